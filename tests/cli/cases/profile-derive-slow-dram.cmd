moesim profile derive --link 64GB/s --dram 40GB/s --hbm 4.8TB/s
