moesim profile derive --link 64Gbit/s --dram 200GB/s --hbm 4.8TB/s
