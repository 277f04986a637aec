moesim profile fit bad.h5
