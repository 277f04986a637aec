moesim trace import --from sglang a.pt out.h5; echo $?
moesim trace import --from moelens a.json out.h5; echo $?
