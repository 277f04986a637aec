# Tiles: light is fast. Marks say which policy is the best one.
set palette defined (0 '#f7fbff', 0.35 '#c6dbef', 0.7 '#6baed6', 1 '#3182bd')
set grid noytics
set border 0
set tics scale 0
set colorbox user origin screen cbx, screen cby size screen cbw, screen cbh noborder
set cbtics scale 0.3 font fticks offset -0.5,0
set cblabel clabel font flabel textcolor rgb '#222222' offset 0.3,0
if (logcolour) { set logscale cb 2 }
#: tile      data index @INDEX using 1:2:($1-0.5):($1+0.5):($2-0.5):($2+0.5):3 with boxxyerror fs solid 1.0 border rgb '#ffffff' lw 0.5 fc palette
#: mark      data index @INDEX using 1:2 with points lc rgb '#000000' lw 0.8 pt @MARK ps 1.6*ps*tile
#: mark-open data index @INDEX using 1:2 with points lc rgb '#000000' lw 0.8 pt @OPEN ps 1.6*ps*tile
#= mark      set label '' at screen @X,@Y point lc rgb '#000000' lw 0.8 pt @MARK ps 1.4*ps
#= mark-open set label '' at screen @X,@Y point lc rgb '#000000' lw 0.8 pt @OPEN ps 1.4*ps
