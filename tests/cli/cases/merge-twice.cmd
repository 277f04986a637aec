moesim merge sample.h5 sample.h5 -o out.h5
