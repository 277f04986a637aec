moesim merge bad.h5 -o out.h5; echo $?; ls
