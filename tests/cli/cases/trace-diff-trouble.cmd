moesim trace diff sample.h5 bad.h5; echo $?; moesim trace diff sample.h5 none.h5; echo $?; moesim trace diff sample.h5; echo $?
moesim trace diff sample.h5 sample.h5 --quiet --verbose; echo $?; moesim trace diff sample.h5 sample.h5 --verbose >/dev/full; echo $?; moesim trace diff sample.h5 sample.h5 --tolerance -1; echo $?
