mkfifo fifo
for name in - /dev/stdout /proc/self/fd/1 /dev/fd/3 /dev/null fifo; do
    moesim run sample.h5 --policy lru --cache 40 --decisions "$name" 3>three; echo $?
    moesim trace convert sample.h5 "$name" 3>three; echo $?
    moesim trace stats sample.h5 -o "$name" 3>three; echo $?
done >out 2>&1
sed 's/^/| /' out; ls -A
