# What all figures share.
unset key
set border 3 lc rgb '#333333' lw 0.6
set tics nomirror out scale 0.5 font fticks textcolor rgb '#222222'
set xtics offset 0,0.2
set xlabel offset 0,0.3
set grid noxtics ytics back lc rgb '#dddddd' lt 1 lw 0.4
