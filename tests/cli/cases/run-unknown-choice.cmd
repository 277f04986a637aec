moesim run sample.h5 --policy oled:confidence=lag2 --cache 40
