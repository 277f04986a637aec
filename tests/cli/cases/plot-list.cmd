moesim plot --list
