ulimit -f 0; moesim trace convert sample.h5 out.h5; echo $?; ls
