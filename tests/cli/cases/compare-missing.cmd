moesim compare nothing.h5 sample.h5
