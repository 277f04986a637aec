moesim profile fit sample.h5
