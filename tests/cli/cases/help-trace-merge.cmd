moesim trace merge --help
