moesim sweep sample.h5 --policy lru,lfu,oled --curve --threads 2 --bandwidth $(seq -s, 1 200)
