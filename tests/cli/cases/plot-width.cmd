moesim plot sample.h5 curve -o a.svg --width 20
