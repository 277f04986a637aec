moesim profile show h200-host --set link.bandwidth=64Gbit/s
