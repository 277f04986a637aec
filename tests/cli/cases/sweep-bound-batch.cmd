moesim sweep sample.h5 --policy lru --cache 40 --time model --batch 1,2 --bound offline-cost
