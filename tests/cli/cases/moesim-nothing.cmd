moesim
