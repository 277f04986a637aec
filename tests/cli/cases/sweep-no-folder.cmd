moesim sweep sample.h5 --policy lru --cache 40 -o none/r.h5
