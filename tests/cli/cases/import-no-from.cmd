moesim trace import in.csv out.h5
