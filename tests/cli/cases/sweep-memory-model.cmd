moesim sweep sample.h5 --policy lru --as deepseek-v3 --gpu-memory 6GiB --context 0
