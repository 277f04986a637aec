moesim --help
