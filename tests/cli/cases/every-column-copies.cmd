for how in zstd gzip; do moesim trace convert every.h5 $how.h5 --compression $how && moesim trace diff every.h5 $how.h5 && echo same; done
moesim trace select every.h5 a.h5 --requests 0:2; moesim trace select every.h5 b.h5 --requests 2:; moesim trace info b.h5 | grep -A2 optional
moesim trace merge a.h5 b.h5 -o m.h5; moesim trace validate --strict m.h5; moesim trace diff every.h5 m.h5
moesim trace select every.h5 code.h5 --workload code --layers 1:2; moesim trace head code.h5 --passes 1:2; moesim trace diff b.h5 code.h5 | grep -e forward -e /id -e pass_ns
