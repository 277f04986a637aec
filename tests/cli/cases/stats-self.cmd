cp sample.h5 t.h5; mkdir sub; ln -s ../t.h5 sub/soft.h5; ln t.h5 hard.h5
for out in t.h5 ./t.h5 sub/soft.h5 sub/../hard.h5 "$PWD/t.h5"; do
    moesim trace stats t.h5 -o "$out" 2>&1 | sed "s|$PWD|HERE|"
done
cmp t.h5 sample.h5 && ls -A
