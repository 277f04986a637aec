moesim sweep sample.h5 --policy lru,oled-full --cache 40,80 --bandwidth 16,64 --profile h200-host --bound offline-cost
