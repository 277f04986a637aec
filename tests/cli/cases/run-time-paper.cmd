moesim run sample.h5 --policy lru,oled-full,full --cache 60 --profile paper-a
