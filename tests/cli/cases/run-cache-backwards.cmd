moesim run sample.h5 --policy lru --cache 60:20:10
