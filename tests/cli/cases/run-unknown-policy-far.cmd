moesim run sample.h5 --policy quantum --cache 40
