moesim run sample.h5 --policy oled --policy oled:confidence=lag1 --cache 40
