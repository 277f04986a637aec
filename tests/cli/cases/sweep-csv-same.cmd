moesim sweep sample.h5 --policy lru --cache 40 -o r.h5 --csv r.h5
