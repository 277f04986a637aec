moesim trace select sample.h5 a.h5 --requests 0:1 >out; moesim trace select sample.h5 b.h5 --requests 1: --layers 0:4 >out
moesim trace diff a.h5 b.h5; echo $?; moesim trace diff a.h5 b.h5 --quiet; echo $?; moesim trace diff a.h5 b.h5 --tolerance 1 | grep -c gate
