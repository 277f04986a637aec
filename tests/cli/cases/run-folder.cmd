moesim run . --policy lru --cache 40
