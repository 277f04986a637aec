moesim merge sample.h5 bad.h5 -o ./sample.h5
