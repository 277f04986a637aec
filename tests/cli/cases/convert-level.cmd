moesim trace convert sample.h5 out.h5 --compression gzip --level 12; echo $?; ls
