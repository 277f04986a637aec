moesim profile models llada2.0-flash --dtype fp8
