moesim run sample.h5 --policy ./nope.so --cache 40
