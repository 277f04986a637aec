moesim profile show h200-host --set link.bandwith=64
