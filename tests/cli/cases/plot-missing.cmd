moesim plot absent.h5 curve -o curve.svg
