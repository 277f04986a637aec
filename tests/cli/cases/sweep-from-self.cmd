moesim sweep sample.h5 --policy lru --cache 40 -o r.h5 >/dev/null; moesim sweep --from r.h5 -o r.h5
