head -c 20000 raw.h5 >cut.h5; moesim profile fit cut.h5
