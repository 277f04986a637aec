moesim compare sample.h5
