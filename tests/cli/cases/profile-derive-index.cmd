moesim profile derive --link 64GB/s --dram 200GB/s --hbm 4.8TB/s --index 1
