moesim trace select sample.h5 p.h5 --requests 2:1
