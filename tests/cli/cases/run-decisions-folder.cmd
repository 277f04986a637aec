moesim run sample.h5 --policy lru --cache 40 --decisions nowhere/d.h5
