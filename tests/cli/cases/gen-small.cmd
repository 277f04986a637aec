moesim trace gen t.h5 --layers 2 --experts 32 --top-k 4 --block 8 --requests 4 && moesim trace validate --strict t.h5 && moesim trace info t.h5 | grep -i synthetic
