moesim profile models --help
