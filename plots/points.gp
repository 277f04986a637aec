# Points over points: what was measured over what was predicted, and the line on which they agree.
#: agree     data index @INDEX using 1:2 with lines lc rgb '#777777' lw 1.2 dt (1,3)
#: cell      data index @INDEX using 1:3:(0):($4-$3) with vectors nohead lc rgb '@COLOUR' lw 1
#: cell      data index @INDEX using 1:2 with points lc rgb '@COLOUR' lw 0.8 pt @MARK ps 0.9*ps
#: fitted    data index @INDEX using 1:2 with points lc rgb '#000000' lw 1 pt 12 ps 1.7*ps
#: witness   data index @INDEX using 1:2 with points lc rgb '@COLOUR' lw 0.8 pt @OPEN ps 0.9*ps
#= agree     set arrow from screen @X1,@Y to screen @X2,@Y nohead lc rgb '#777777' lw 1.2 dt (1,3)
#= cell      set label '' at screen @X,@Y point lc rgb '@COLOUR' pt @MARK ps 0.9*ps
#= fitted    set label '' at screen @X,@Y point lc rgb '#000000' lw 1 pt 12 ps 1.7*ps
#= witness   set label '' at screen @X,@Y point lc rgb '@COLOUR' pt @OPEN ps 0.9*ps
