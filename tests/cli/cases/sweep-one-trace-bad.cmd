moesim sweep sample.h5 bad.h5 --policy lru --cache 40
