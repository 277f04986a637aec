moesim sweep --help
