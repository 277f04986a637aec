moesim trace gen --help
