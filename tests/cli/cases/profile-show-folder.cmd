moesim profile show ./
