for cpu in xyz AVX2; do
    MOESIM_CPU=$cpu moesim run sample.h5 --policy lru --cache 40 2>err; echo $?; sed 's/those are: base.*/those are: base …/' err
done
for cpu in base ''; do MOESIM_CPU=$cpu moesim run sample.h5 --policy lru --cache 40 | grep -c ^lru; done
