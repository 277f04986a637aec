moesim trace plugin-path --help
