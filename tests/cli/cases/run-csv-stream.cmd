for name in /dev/stdout /dev/fd/1 /proc/self/fd/1 -; do
    moesim run sample.h5 --policy lru --cache 40 --csv "$name" >both && head -c 6 both && tail -c +7 both | grep -c '^lru'
done
moesim run sample.h5 --policy lru --cache 40 --csv /dev/fd/3 3>csv >table && head -c 6 csv; echo; grep -c '^lru' table
moesim run sample.h5 --policy lru --cache 40 --csv same >same; echo $?
mkfifo fifo; wc -l <fifo & moesim run sample.h5 --policy lru --cache 40 --csv fifo >table; wait
moesim run sample.h5 --policy lru --cache 40 --csv /dev/null >table && ls -A
