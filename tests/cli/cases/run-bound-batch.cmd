moesim run sample.h5 --policy lru --cache 40 --time model --batch 2 --bound offline-cost
