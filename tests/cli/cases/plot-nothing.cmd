moesim plot
