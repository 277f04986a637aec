moesim sweep sample.h5 --policy lru,oled,belady --cache 40:160:40
