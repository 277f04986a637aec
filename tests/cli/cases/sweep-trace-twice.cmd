moesim sweep sample.h5 ./sample.h5 --policy lru --cache 40
