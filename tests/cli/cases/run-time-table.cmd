moesim run sample.h5 --policy lru,oled-full,ideal,full --cache 40 --profile h200-host --bandwidth 32 --baseline lru
