moesim profile show h200-host --set sync=3us --format json
