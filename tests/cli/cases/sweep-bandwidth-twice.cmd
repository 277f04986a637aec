moesim sweep sample.h5 --policy lru --cache 40 --bandwidth 64,64GB/s
