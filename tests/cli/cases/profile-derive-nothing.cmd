moesim profile derive
