moesim run sample.h5 --policy lru,oled-full --cache 40
