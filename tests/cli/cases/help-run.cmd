moesim run --help
