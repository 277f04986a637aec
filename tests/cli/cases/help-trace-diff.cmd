moesim trace diff --help
