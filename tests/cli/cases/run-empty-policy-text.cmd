moesim run sample.h5 --policy '' --cache 40
