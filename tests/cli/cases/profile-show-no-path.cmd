moesim profile show sample.h5
