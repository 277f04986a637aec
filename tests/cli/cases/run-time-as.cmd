moesim run sample.h5 --policy lru --policy full --cache 40 --time model --as llada2.0-flash --dtype fp8 --set link.alpha=10us,other.host=0 --without contention,head
