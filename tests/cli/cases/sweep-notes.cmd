moesim sweep sample.h5 --policy surv,lru --policy oled:confidence=hindsight --cache 40 | tail -6; moesim sweep sample.h5 --requests 0:1 --policy lru --cache 40 | tail -2
