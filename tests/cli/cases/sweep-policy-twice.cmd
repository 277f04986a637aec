moesim sweep sample.h5 --policy lru,lru --cache 40
