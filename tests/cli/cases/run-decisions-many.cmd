moesim run sample.h5 --policy lru,lfu --cache 40 --decisions d.h5; s=$?; ls; exit $s
