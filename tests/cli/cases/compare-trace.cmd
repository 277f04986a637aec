moesim compare sample.h5 sample.h5
