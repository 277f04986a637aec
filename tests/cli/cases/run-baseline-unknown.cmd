moesim run sample.h5 --policy lru,lfu --cache 40 --baseline lrf
