moesim sweep sample.h5 --policy lru --as llada2.0-flash --gpu-memory 6GiB --context 8192
