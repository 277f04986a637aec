cp "$(command -v moesim)" ./moesim-copy
PATH=/nonexistent ./moesim-copy profile measure --device host --as llada2.0-mini -o r.h5 2>err; echo $?
/usr/bin/sed "s|in $PWD or|in HERE or|" err
