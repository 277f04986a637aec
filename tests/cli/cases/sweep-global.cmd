moesim sweep sample.h5 --policy lru,belady --scope global --cache 400MiB:1200MiB:400MiB
