moesim profile show h200-hots
