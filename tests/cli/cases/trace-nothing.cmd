moesim trace
