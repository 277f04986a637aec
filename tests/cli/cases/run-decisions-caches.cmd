moesim run sample.h5 --policy lru --cache 40,60 --decisions d.h5; s=$?; ls; exit $s
