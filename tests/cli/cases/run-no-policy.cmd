moesim run sample.h5 --cache 40
