moesim profile show pcie5-default --dtype int4
