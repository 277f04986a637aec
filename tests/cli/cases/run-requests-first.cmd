moesim run sample.h5 --policy lru --cache 40 --requests :1 --format csv | cut -d, -f1-5
