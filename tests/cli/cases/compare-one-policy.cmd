moesim compare sample.h5 sample.h5 --a-policy lru
