moesim trace gen t.h5 --top-k 200; moesim trace gen t.h5 --active 500; moesim trace gen t.h5 --experts 12 --block 4; moesim trace gen t.h5 --preset llada; moesim trace gen -; ls
