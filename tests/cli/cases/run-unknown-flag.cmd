moesim run sample.h5 --polcy lru --cache 40
