moesim run sample.h5 --policy lru --cache 40 --time model --bound cheap
