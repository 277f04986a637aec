moesim run
