moesim sweep sample.h5 --policy lru --cache 40 --bound offline-cost
