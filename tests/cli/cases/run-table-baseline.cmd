moesim run sample.h5 --policy lru,oled,belady --policy oled:confidence=hindsight --cache 40 --baseline lru --gap
