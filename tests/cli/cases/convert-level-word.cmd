moesim trace convert sample.h5 out.h5 --level fast
