moesim profile show pcie5-default --as LLaDA2.0-flash --dtype int4
