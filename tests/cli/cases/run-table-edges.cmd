moesim run sample.h5 --policy lru,belady --cache 0,256
