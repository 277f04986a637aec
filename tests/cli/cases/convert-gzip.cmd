moesim trace convert sample.h5 g.h5 --compression gzip
moesim trace convert sample.h5 a.h5 && moesim trace convert sample.h5 b.h5 --compression zstd
cmp a.h5 b.h5 && moesim trace convert g.h5 c.h5 --level 19 && moesim trace validate c.h5 && ls
