moesim run "$(printf 'no\nsuch\033[31m.h5')" --policy lru --cache 1
moesim trace info "$(printf 'no\rsuch\302\233\377.h5')"
moesim run sample.h5 --policy lru --cache "$(printf '1\n2')"
moesim run sample.h5 --policy "$(printf 'l\033ru')" --cache 1
moesim "$(printf 'ru\nn')"
moesim run sample.h5 --policy lru --cache 40 "$(printf -- '--e\177vil')"
moesim profile show "$(printf './\033[2J.json')"
