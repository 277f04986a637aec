moesim run sample.h5 --policy lru --cache 40 --order flattened --batch 2; moesim run sample.h5 --policy lru --cache 40 --warmup 1
