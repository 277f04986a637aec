moesim profile show pcie5-default --as llada2-mini
