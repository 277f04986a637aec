ulimit -t 20; moesim trace validate --old-format sample.h5
