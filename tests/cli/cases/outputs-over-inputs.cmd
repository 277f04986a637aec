moesim profile show h200-host --format json >p.json 2>/dev/null || echo '{}' >p.json
for option in --csv --decisions; do
    moesim run sample.h5 --policy lru --cache 40 --profile p.json $option ./p.json; echo $?
    moesim run sample.h5 --policy lru --cache 40 $option ./sample.h5; echo $?
done
for option in --csv -o; do
    moesim sweep sample.h5 --policy lru --cache 40 --profile ./p.json $option p.json; echo $?
    moesim sweep sample.h5 --policy lru --cache 40 $option ./sample.h5; echo $?
done
moesim sweep sample.h5 --policy lru --cache 40 --csv r --output ./r; echo $?
moesim sweep sample.h5 --policy lru --cache 40 -o r.h5 >/dev/null; cp r.h5 before.h5
moesim sweep --from r.h5 --csv ./r.h5; echo $?
moesim sweep --from r.h5 -o ./r.h5; echo $?
moesim plot r.h5 curve -o ./r.h5; echo $?
cp r.h5 p.svg.dat; moesim plot p.svg.dat curve -o p.svg --keep; echo $?
moesim merge r.h5 -o ./r.h5; echo $?
cmp r.h5 before.h5 && ls -A
