moesim trace stats sample.h5 -o s.svg >/dev/null && moesim plot s.svg overlap -o s.svg
