moesim trace stats sample.h5 -o stats.h5 >/dev/null && moesim plot stats.h5 overlap -o overlap.jpg; status=$?; ls; exit $status
