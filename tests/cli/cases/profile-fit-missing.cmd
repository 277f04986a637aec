moesim profile fit none.h5
