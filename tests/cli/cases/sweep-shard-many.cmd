moesim sweep sample.h5 --policy lru --cache 40 --shard 1/3
