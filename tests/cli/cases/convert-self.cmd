cp sample.h5 a.h5; cp a.h5 b.h5; moesim trace convert a.h5 ./a.h5; echo $?; cmp a.h5 b.h5
