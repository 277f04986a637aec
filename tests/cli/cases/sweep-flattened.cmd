moesim sweep sample.h5 --policy lru --order flattened --cache 40,80
