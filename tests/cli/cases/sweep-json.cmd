moesim sweep sample.h5 --policy lru --cache 40 --bandwidth 32 --profile paper-a --format json | grep -v libraries | head -60
