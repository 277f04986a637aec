moesim trace salvage sample.h5 out.h5; echo $?; ls
