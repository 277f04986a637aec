moesim run bad.h5 --policy lru --cache 40
