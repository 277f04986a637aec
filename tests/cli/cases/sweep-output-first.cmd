mkfifo fifo
for name in - /dev/stdout /proc/self/fd/3 /dev/full fifo . none/x ./; do
    moesim sweep sample.h5 --policy lru --cache 40 -o "$name" 3>three; echo $?
done
moesim sweep sample.h5 --policy lru --cache 40 -o r.h5 --csv none/x; echo $?
moesim sweep sample.h5 --policy lru --cache 40 -o r.h5 --csv ./r.h5.partial; echo $?
cp sample.h5 r.h5.partial
moesim sweep r.h5.partial --policy lru --cache 40 -o r.h5; echo $?
moesim sweep sample.h5 --policy lru --cache 40 -o r.h5; echo $?
echo nonsense >r.h5.partial
moesim sweep sample.h5 --policy lru --cache 40 -o r.h5; echo $?
rm r.h5.partial three; ls -A; ls -A /dev | grep partial
moesim run sample.h5 --policy lru,oled-full:confidence=none --cache 40
