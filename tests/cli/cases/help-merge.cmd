moesim merge --help
