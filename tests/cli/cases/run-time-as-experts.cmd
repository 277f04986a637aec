moesim run sample.h5 --policy lru --cache 40 --time model --as mixtral-8x7b
