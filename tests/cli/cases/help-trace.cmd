moesim trace --help
