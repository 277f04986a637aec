moesim trace import --help
