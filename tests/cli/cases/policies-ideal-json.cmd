moesim policies ideal --format json
