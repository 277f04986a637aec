moesim profile show --help
