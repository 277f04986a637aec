moesim run sample.h5 --policy lru --cache
