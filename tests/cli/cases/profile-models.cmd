moesim profile models
