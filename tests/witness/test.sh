#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The witness on a CPU, from a trace to the table. Skipped where python3 has no torch or h5py.
# usage: test.sh MOESIM SOURCE_ROOT PLUGIN_FOLDER
set -euo pipefail
moesim=$(realpath -e -- "$1") root=$(realpath -e -- "$2")
HDF5_PLUGIN_PATH=$(realpath -e -- "$3")
export HDF5_PLUGIN_PATH PYTHONDONTWRITEBYTECODE=1
if ! python=$("$root/tests/support/python.sh" h5py,numpy,torch); then
    echo "skipped: no python3 has torch, h5py and numpy (MOESIM_PYTHON names another python3)"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
cd "$work"
# A plug-in with sanitizers needs their run-time in the program that loads it, whose own leaks are no business of ours.
runtime=$(ldd "$HDF5_PLUGIN_PATH/libh5zstd.so" | awk '/libasan/ { print $3 }')
with_plugin() {
    LD_PRELOAD=$runtime ASAN_OPTIONS=detect_leaks=0 "$python" "$witness" "$@"
}
witness=$root/tests/witness/witness.py
"$moesim" trace select "$root/traces/samples/sample.h5" t.h5 --requests 0:1 --layers 0:2 --compression gzip >/dev/null
"$moesim" fidelity t.h5 --policy lru,oled --cache 60 --hidden 64 --intermediate 64 --device null --repeat 2 -o raw.h5 \
    >/dev/null 2>&1
"$moesim" run t.h5 --policy lru --cache 60 --decisions lru.h5 >/dev/null
"$moesim" run t.h5 --policy oled --cache 60 --decisions oled.h5 >/dev/null
"$moesim" run t.h5 --policy full --cache 256 --decisions full.h5 >/dev/null
with_plugin prepare --raw raw.h5 --trace t.h5 --decisions lru.h5 oled.h5 full.h5 -o work.npz
"$python" "$root/tests/witness/order.py" work.npz
# grouped products where this PyTorch has them, then without; without an untimed execution the last event alone is checked
"$python" "$witness" run work.npz -o times.npz --device cpu --repeat 1 --verify 40 --pool 96 --threads 1 --no-warm >ran
grep -c ' 1 events checked' ran | grep -qx 3
"$python" "$witness" run work.npz -o times.npz --device cpu --repeat 1 --verify 40 --pool 96 --threads 1 --no-grouped >ran
grep -c ' 10 events checked' ran | grep -qx 3
with_plugin write work.npz times.npz --raw raw.h5 -o witness.h5
"$moesim" fidelity t.h5 --raw raw.h5 --witness witness.h5 --calibrate none --format csv >out.csv
grep -c '^witness,' out.csv | grep -qx 3
grep -q '^witness,lru,60,,test,1,1,' out.csv
# another log than the raw file's must not pass
"$moesim" run t.h5 --policy lfu --cache 60 --decisions other.h5 >/dev/null
if with_plugin prepare --raw raw.h5 --trace t.h5 --decisions other.h5 -o no.npz 2>err; then
    echo "a log of no plan was taken"
    exit 1
fi
grep -q 'no decision log fits' err
# nor may times be written as those of other decisions
"$moesim" fidelity t.h5 --policy lfu,oled --cache 60 --hidden 64 --intermediate 64 --device null --repeat 2 -o lfu.h5 \
    >/dev/null 2>&1
if with_plugin write work.npz times.npz --raw lfu.h5 -o no.h5 2>err; then
    echo "times of lru were written as those of lfu"
    exit 1
fi
grep -q 'plan 0 decides otherwise' err
echo "the witness agrees on what was decided"
