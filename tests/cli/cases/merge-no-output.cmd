moesim merge sample.h5
