# Lines over a quantity: bands or, with few points, bars are 95 % intervals; bounds are dashed.
#: line      data index @INDEX using 1:(few ? NaN : $3):4 with filledcurves fc rgb '@COLOUR' fs transparent solid 0.18 noborder
#: bound     data index @INDEX using 1:(few ? NaN : $3):4 with filledcurves fc rgb '@COLOUR' fs transparent solid 0.10 noborder
#: floor     data index @INDEX using 1:2 with lines lc rgb '#777777' lw 1.2 dt (1,3)
#: line      data index @INDEX using 1:(few ? $3 : NaN):(0):($4-$3) with vectors nohead lc rgb '@COLOUR' lw 1
#: bound     data index @INDEX using 1:2 with lines lc rgb '@COLOUR' lw 1.1 dt @DASHED
#: line      data index @INDEX using 1:2 with linespoints lc rgb '@COLOUR' lw 1.1 dt @DASH pt @MARK ps 0.8*ps pi every
#: knee      data index @INDEX using 1:2 with points lc rgb '#000000' lw 1 pt 12 ps 1.7*ps
#: reference data index @INDEX using 1:2 with points lc rgb '#000000' lw 1 pt 2 ps ps
#= line      set arrow from screen @X1,@Y to screen @X2,@Y nohead lc rgb '@COLOUR' lw 1.1 dt @DASH
#= line      set label '' at screen @X,@Y point lc rgb '@COLOUR' pt @MARK ps 0.8*ps
#= bound     set arrow from screen @X1,@Y to screen @X2,@Y nohead lc rgb '@COLOUR' lw 1.1 dt @DASHED
#= floor     set arrow from screen @X1,@Y to screen @X2,@Y nohead lc rgb '#777777' lw 1.2 dt (1,3)
#= knee      set label '' at screen @X,@Y point lc rgb '#000000' lw 1 pt 12 ps 1.7*ps
#= reference set label '' at screen @X,@Y point lc rgb '#000000' lw 1 pt 2 ps ps
