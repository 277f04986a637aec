moesim run sample.h5 --policy ideal --scope global --cache 40MiB
