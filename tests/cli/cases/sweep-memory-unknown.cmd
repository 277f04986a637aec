moesim sweep sample.h5 --policy lru --gpu-memory 6GiB --context 0
