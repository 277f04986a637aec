moesim sweep sample.h5 --policy lru --cache 40 --context 10
