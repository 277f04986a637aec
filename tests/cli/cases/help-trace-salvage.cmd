moesim trace salvage --help
