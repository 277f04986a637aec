moesim compare --help
