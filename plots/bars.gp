# Bars, lying or standing, with 95 % intervals; bounds are pale with a dashed outline.
if (lying) { set grid xtics noytics; set border 1; set ytics scale 0 } else { set xtics scale 0 }
#: bar       data index @INDEX using (($5+$6)/2):(($3+$4)/2):5:6:3:4 with boxxyerror fs solid 1.0 noborder fc rgb '@COLOUR'
#: bar-bound data index @INDEX using (($5+$6)/2):(($3+$4)/2):5:6:3:4 with boxxyerror fs solid 0.2 noborder fc rgb '@COLOUR'
#: bar-bound data index @INDEX using (($5+$6)/2):(($3+$4)/2):5:6:3:4 with boxxyerror fs empty border lc rgb '@COLOUR' lc rgb '@COLOUR' lw 0.8 dt (6,4)
#: part      data index @INDEX using (($5+$6)/2):(($3+$4)/2):5:6:3:4 with boxxyerror fs solid 1.0 noborder fc rgb '@PART'
#: xerror    data index @INDEX using 5:2:($6-$5):(0) with vectors nohead lc rgb '#222222' lw 0.8
#: yerror    data index @INDEX using 1:3:(0):($4-$3) with vectors nohead lc rgb '#222222' lw 0.8
#: value     data index @INDEX using 1:2:(sprintf($3 < 99.95 ? '%#.3g' : '%.0f', $3)) with labels left offset 0.6,0 font fticks textcolor rgb '#222222'
#= bar       set object rectangle from screen @X1,@Y1 to screen @X2,@Y2 fc rgb '@COLOUR' fs solid 1.0 noborder
#= bar-bound set object rectangle from screen @X1,@Y1 to screen @X2,@Y2 fc rgb '@COLOUR' fs solid 0.2 noborder
#= bar-bound set object rectangle from screen @X1,@Y1 to screen @X2,@Y2 fs empty border lc rgb '@COLOUR' lw 0.8 dt (6,4)
#= part      set object rectangle from screen @X1,@Y1 to screen @X2,@Y2 fc rgb '@PART' fs solid 1.0 noborder
