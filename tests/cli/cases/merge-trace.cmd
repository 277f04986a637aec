moesim merge sample.h5 -o out.h5; echo $?; ls
