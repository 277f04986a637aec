moesim sweep --policy lru --cache 40
