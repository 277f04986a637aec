moesim profile measure --device null --as llada2.0-mini -o r.h5
