moesim run sample.h5 --policy lru --cache 40 --time count --profile h200-host
