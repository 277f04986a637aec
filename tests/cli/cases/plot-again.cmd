moesim trace stats sample.h5 -o stats.h5 >/dev/null && moesim plot stats.h5 overlap -o a.svg && moesim plot stats.h5 overlap -o b.svg && cmp a.svg b.svg && ls
