moesim run sample.h5 --policy lru --cache 40 --profile paper-a --as llada2.0-mini
