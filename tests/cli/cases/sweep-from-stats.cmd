moesim trace stats sample.h5 -o s.h5 >/dev/null; moesim sweep --from s.h5
