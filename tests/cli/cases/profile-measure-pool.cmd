moesim profile measure --device host --as llada2.0-mini --host-pool 1MiB -o r.h5
