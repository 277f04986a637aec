moesim profile measure --device host -o r.h5
