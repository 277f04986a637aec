moesim trace gen t.h5 --like sample.h5 --requests 1 --prompt 1 --output-tokens 1 >all; echo $?; tail -1 all
