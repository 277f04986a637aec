moesim run sample.h5 --policy lru:decay=2 --cache 40
