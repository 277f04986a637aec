moesim sweep sample.h5 --policy lru,ideal --cache 40,80 -o r.h5 >/dev/null && for f in tpot breakdown bandwidth grid; do moesim plot r.h5 $f -o $f.svg; done; status=$?; ls; exit $status
