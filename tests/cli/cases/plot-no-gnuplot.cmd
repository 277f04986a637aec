mkdir only && ln -s "$(command -v moesim)" only/moesim && moesim trace stats sample.h5 -o stats.h5 >/dev/null && PATH=$PWD/only exec moesim plot stats.h5 overlap -o overlap.svg
