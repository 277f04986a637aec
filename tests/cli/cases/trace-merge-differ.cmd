moesim trace select sample.h5 a.h5 --layers 0:4 >out
moesim trace merge sample.h5 a.h5 -o m.h5; echo $?; ls
moesim trace convert sample.h5 b.h5 >out; moesim trace merge b.h5 bad.h5 -o m.h5; echo $?; ls
