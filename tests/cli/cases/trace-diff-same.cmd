moesim trace convert sample.h5 gzip.h5 --compression gzip >out; moesim trace diff sample.h5 gzip.h5; echo $?; moesim trace diff gzip.h5 sample.h5 --verbose; echo $?
