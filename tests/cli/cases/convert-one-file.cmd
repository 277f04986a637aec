moesim trace convert sample.h5
