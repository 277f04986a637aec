moesim plot --help
