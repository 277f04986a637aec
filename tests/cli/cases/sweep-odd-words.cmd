s="moesim sweep sample.h5 --policy lru --cache 40"
for c in "$s" "moesim run sample.h5 --policy lru --cache 40" "moesim compare a.h5 b.h5"; do $c --seed 9223372036854775808; echo $?; done
$s --seed 9000000000000000000 -o r.h5 >r.txt && moesim sweep --from r.h5 -o again.h5 >again.txt && cmp r.h5 again.h5 && cmp r.txt again.txt
$s --profile h200-host --set other.host=0,link.bandwidth=32GB/s --bandwidth 64; echo $?
moesim run sample.h5 --policy lru --cache 40 --profile h200-host --set link.bandwidth=32GB/s --bandwidth 64; echo $?
$s --profile h200-host,; echo $?
$s --as llada2.0-mini --time model --dtype ,; echo $?
$s -o $(printf %0245d 0); echo $?
$s -o $(printf %0256d 0); echo $?
ls 0* 2>/dev/null
