for range in 0:2 0: :2 1: 0:3 2: 2:3 0:18446744073709551614 0:18446744073709551615 0:18446744073709551616; do
    moesim run sample.h5 --policy lru --cache 40 --requests "$range" | grep -c ^lru
    moesim trace select sample.h5 o.h5 --requests "$range"
done
for range in 0:20 19: :1 0:21 20: 20:21 0:4294967295 0:18446744073709551615; do
    moesim trace select sample.h5 o.h5 --layers "$range"
done
