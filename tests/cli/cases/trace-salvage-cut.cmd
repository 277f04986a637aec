head -c 1000000 sample.h5 >cut.h5; moesim trace validate cut.h5; moesim trace salvage cut.h5 saved.h5; moesim trace validate --strict saved.h5; ls -A
moesim trace diff sample.h5 saved.h5 | grep -v "in common .* the same"
