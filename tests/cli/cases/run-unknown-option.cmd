moesim run sample.h5 --policy oled:confidance=lag1 --cache 40
