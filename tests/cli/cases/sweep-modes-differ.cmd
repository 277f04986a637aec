moesim sweep sample.h5 --policy lru --cache 40 --profile h200-host,paper-a
