moesim trace convert --help
