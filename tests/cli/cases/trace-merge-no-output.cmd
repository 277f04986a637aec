moesim trace merge sample.h5 sample.h5
