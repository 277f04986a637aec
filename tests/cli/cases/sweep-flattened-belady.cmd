moesim sweep sample.h5 --policy belady --order flattened --cache 40 -o r.h5; status=$?; ls r.h5*; exit $status
