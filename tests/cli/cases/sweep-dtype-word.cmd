moesim sweep sample.h5 --policy lru --cache 40 --as llada2.0-mini --dtype fp9
