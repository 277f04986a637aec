moesim sweep sample.h5 --policy lru --cache 257
