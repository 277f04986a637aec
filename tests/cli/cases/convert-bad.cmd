moesim trace convert bad.h5 out.h5; echo $?; moesim trace convert bad.h5 out.h5 --old-format; echo $?; ls
