moesim policies
