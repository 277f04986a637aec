moesim trace select --help
