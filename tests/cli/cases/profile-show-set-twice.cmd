moesim profile show h200-host --set sync=1us --set sync=2us
