moesim run sample.h5 --policy random,naive,lru,lfu,oled,surv,belady,ideal --cache 20,40,60,100
