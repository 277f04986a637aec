moesim run sample.h5 --policy lru,lfu,lru --cache 40
