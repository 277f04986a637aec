moesim run sample.h5 --policy oled --cache 40 --order flattened
