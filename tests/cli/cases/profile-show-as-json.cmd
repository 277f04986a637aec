moesim profile show pcie5-default --as llada2.0-mini --set link.bandwidth=32 --format json
