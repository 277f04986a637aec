moesim run sample.h5 --policy lru --cache 10:50:10,30
