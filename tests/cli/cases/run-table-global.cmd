moesim run sample.h5 --policy lru,belady --scope global --cache 40MiB:80MiB:40MiB
