moesim trace select sample.h5 p.h5 --requests 2:9; moesim trace select sample.h5 p.h5 --layers 20:; moesim trace select sample.h5 p.h5 --workload poems; echo $?; ls
