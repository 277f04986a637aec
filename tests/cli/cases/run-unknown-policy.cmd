moesim run sample.h5 --policy lur --cache 40
