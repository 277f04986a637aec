head -c 200 sample.h5 >cut.h5; moesim compare cut.h5 cut.h5
