moesim run sample.h5 --policy lru --cache 0:4000000000
