moesim trace plugin-path sample.h5
