moesim profile nothing
