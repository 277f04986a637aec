moesim profile show pcie5-default --set link.bandwidth=64GB/s --set other.host=0 --set cpu.step=12us
