moesim trace convert sample.h5 absent/out.h5; echo $?; ls
