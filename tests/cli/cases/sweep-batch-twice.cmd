moesim sweep sample.h5 --policy lru --cache 40 --batch 1,2,1
