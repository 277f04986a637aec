moesim run sample.h5 --policy lru --cache 1:2:3:4
