moesim sweep sample.h5 --policy lru,oled-full,belady --cache 40:200:80 --bandwidth 16,64 --profile h200-host
