moesim profile fit raw.h5 --name "my machine"
