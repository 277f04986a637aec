moesim trace inof sample.h5
