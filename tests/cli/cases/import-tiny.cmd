printf "%s\n" "# route_trace v1" "# model=/m/tiny arch=a n_layer=1 n_expert=4 n_expert_used=2" "# layer=0 expert_bytes=100 dense_bytes=7" "turn,phase,step,layer,slot,expert,weight,residency,expert_bytes" "0,0,0,0,0,1,0.75,0,100" "0,0,0,0,1,3,0.25,0,100" "0,1,1,0,0,3,0.5,1,0" "0,1,1,0,1,2,0.5,0,100" >in.csv
moesim trace import --from route-trace in.csv t.h5 && moesim trace validate --strict t.h5 && moesim trace head t.h5
sed s/0.75/-1/ in.csv >bad.csv; moesim trace import --from route-trace bad.csv u.h5; echo $?; ls
