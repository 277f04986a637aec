moesim profile show h200-host
