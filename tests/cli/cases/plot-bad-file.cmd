moesim plot bad.h5 curve -o curve.svg
