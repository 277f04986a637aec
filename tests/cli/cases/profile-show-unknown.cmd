moesim profile show h200
