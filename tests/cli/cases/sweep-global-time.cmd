moesim sweep sample.h5 --policy lru --scope global --cache 400MiB --time model
