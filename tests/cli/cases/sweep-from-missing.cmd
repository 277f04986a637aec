moesim sweep --from none.h5
