moesim run missing.h5 --policy lru --cache 40
