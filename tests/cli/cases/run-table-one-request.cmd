moesim run sample.h5 --policy lru,lfu --cache 40 --requests 1:2 --baseline lru
