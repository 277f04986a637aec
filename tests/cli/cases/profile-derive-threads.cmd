moesim profile derive --link 32 --dram 80 --hbm 1TB/s --threads 4 --as mixtral-8x7b --name box
