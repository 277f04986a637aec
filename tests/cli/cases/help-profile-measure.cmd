moesim profile measure --help
