moesim policies oled-full
