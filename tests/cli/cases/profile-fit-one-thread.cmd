moesim profile fit raw.h5 --threads 1 --copies events --name one | sed -n "1p;/^  link.alpha/,/^  link.band/p;/^CPU/,/GB/p"
