moesim run sample.h5 --policy lru --cache 40 --set link.alpha=1us
