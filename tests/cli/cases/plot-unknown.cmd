moesim plot sample.h5 curv -o curve.svg
