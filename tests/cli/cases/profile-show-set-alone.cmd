moesim profile show --set sync=1us
