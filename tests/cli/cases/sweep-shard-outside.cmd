moesim sweep sample.h5 --policy lru --cache 40:60:10 --shard 4/3
