moesim rnu sample.h5
