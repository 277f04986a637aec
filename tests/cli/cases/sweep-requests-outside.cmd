moesim sweep sample.h5 --policy lru --cache 40 --requests 1:3
