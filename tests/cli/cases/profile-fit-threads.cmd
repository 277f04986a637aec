moesim profile fit raw.h5 --threads 3
