moesim profile fit --help
