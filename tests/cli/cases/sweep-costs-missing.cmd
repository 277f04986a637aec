moesim sweep sample.h5 --policy oled-full --cache 40
