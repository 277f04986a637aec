moesim profile show h200-host --set link.bandwidth=128GB/s
