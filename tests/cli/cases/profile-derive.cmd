moesim profile derive --link 64GB/s --dram 200GB/s --hbm 4.8TB/s -o d.json | grep -v sha256 && moesim profile show d.json | sed -n 1p
