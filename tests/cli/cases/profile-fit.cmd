moesim profile fit raw.h5 -o m.json | grep -v sha256 && moesim profile show m.json | grep -c . && sha256sum raw.h5 | cut -c1-64 >d && grep -q "$(cat d)" m.json && echo digest recorded
