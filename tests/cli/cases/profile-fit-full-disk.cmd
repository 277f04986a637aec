moesim profile fit raw.h5 -o /dev/full >out; echo $?; wc -c <out
