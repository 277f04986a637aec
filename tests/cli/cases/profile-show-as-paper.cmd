moesim profile show paper-a --as llada2.0-mini
