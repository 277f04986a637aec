moesim trace select sample.h5 a.h5 --requests 0:1 >out; moesim trace select sample.h5 b.h5 --requests 1: >out
moesim trace merge a.h5 b.h5 -o m.h5; moesim trace validate --strict m.h5; moesim trace merge a.h5 b.h5 -o again.h5 >out; cmp m.h5 again.h5
moesim trace diff sample.h5 m.h5; echo $?
moesim trace merge sample.h5 -o one.h5; moesim trace convert sample.h5 two.h5 >out; cmp one.h5 two.h5
