moesim profile measure --device host --as llada2.0-mini -o none/r.h5
