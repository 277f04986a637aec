name=$(printf 'a\377\033b.h5'); out=$(printf 'o\377\033.h5')
cp sample.h5 "$name"
moesim trace info "$name" --format json | grep '"path"'
moesim trace stats "$name" --format json | grep '"path"'
moesim run "$name" --policy lru --cache 40 --format json | grep '"path"'
moesim sweep "$name" --policy lru --cache 40 --format json | grep '"path"\|"trace"' | sort | uniq -c
moesim sweep "$name" --policy lru --cache 40 -o "r$out" >/dev/null
moesim compare "r$out" "r$out" --format json | grep '"[ab]": "'
moesim trace convert "$name" "$out"; moesim trace select "$name" "$out" --requests 0:1
moesim trace stats "$name" | grep -c "$(printf '\033')"; ls | wc -l
