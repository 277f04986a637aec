moesim profile measure --device host --as llada3 -o r.h5
