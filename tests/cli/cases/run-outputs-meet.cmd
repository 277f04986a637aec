mkdir sub; ln -s . here; ln -s new sub/dangling
for other in x ./x here/x sub/../x "$PWD/x"; do
    moesim run sample.h5 --policy lru --cache 40 --csv x --decisions "$other"; echo $?
done 2>&1 | sed "s|$PWD|HERE|"
ls -A
