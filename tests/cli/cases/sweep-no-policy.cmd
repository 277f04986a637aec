moesim sweep sample.h5 --cache 40
