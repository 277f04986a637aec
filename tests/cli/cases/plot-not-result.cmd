moesim plot sample.h5 curve -o curve.svg; status=$?; ls; exit $status
