moesim run sample.h5 --policy lru --cache 40 --requests 0:3
