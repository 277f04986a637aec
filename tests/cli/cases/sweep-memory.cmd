moesim sweep sample.h5 --policy lru --as llada2.0-flash --dtype fp8,bf16 --gpu-memory 24GiB --context 4096 --profile pcie5-default
