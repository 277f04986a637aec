moesim profile --help
