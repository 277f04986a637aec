moesim sweep sample.h5 --policy lru,oled --cache 20,40 --requests 0:2 --format json >/dev/full; echo $?
