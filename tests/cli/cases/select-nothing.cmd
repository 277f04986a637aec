moesim trace select sample.h5 p.h5; echo $?; ls
