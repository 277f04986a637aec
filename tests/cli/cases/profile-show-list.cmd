moesim profile show
