moesim run sample.h5 --policy lru --cache 40 --decisions d.h5 >/dev/null; ls
