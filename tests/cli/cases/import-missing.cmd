moesim trace import --from route-trace in.csv out.h5
