moesim profile measure --device NULL --as llada2.0-mini -o r.h5
