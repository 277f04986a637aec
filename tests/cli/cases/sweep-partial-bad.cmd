cp bad.h5 r.h5.partial; moesim sweep sample.h5 --policy lru --cache 40 -o r.h5
