moesim profile show --format json
