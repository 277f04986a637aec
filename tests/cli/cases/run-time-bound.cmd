moesim run sample.h5 --policy lru,oled-full --cache 40,80 --profile h200-host --bound offline-cost
