moesim trace import --from route_trace in.csv out.h5
