moesim plot sample.h5 curve
