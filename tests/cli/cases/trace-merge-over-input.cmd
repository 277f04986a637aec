cp sample.h5 a.h5; moesim trace convert a.h5 b.h5 >out; moesim trace merge a.h5 b.h5 -o ./b.h5
