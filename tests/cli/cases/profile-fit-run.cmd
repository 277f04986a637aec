moesim profile fit raw.h5 -o m.json >out && moesim run sample.h5 --policy lru --cache 40 --profile ./m.json --as llada2.0-mini --format csv >csv && grep -c . csv
