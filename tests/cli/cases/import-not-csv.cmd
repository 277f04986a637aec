moesim trace import --from route-trace sample.h5 out.h5; echo $?; ls
