moesim profile derive --help
