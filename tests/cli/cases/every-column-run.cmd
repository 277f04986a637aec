moesim trace stats every.h5 | head -3; moesim run every.h5 --policy lru,oled --cache 3
