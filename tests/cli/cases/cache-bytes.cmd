for cache in 40 1.5 1e9 1.5B 400KB 4g 100MiB:1e9:100MiB 40,1GiB; do
    moesim run sample.h5 --policy lru --scope global --cache "$cache"; echo $?
done
for window in 400KB 1.5 0.3B; do
    moesim run sample.h5 --policy lru --cache 40 --window "$window"; echo $?
done
