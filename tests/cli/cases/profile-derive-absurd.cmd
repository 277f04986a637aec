try() { moesim profile derive --link "$1" --dram "$2" --hbm "$3"; echo $?; }
try 1e-9 200 4800
try 64 1e15 4800
try 64 200 1e-9
