#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# moesim-device by itself: help, devices that are not there, words that cannot be meant, a log of another trace, files that are
# gone on with after an interruption and a time limit.
# usage: device.sh MOESIM_DEVICE MOESIM SOURCE_ROOT
set -u
device=$(realpath -e -- "$1") || exit 2
program=$device
moesim=$(realpath -e -- "$2") || exit 2
root=$(realpath -e -- "$3") || exit 2
. "$(dirname -- "$0")/expect.sh"

"$moesim" trace select "$root/traces/samples/sample.h5" t.h5 --requests 0:1 --layers 0:2 >/dev/null || exit 2
"$moesim" trace select "$root/traces/samples/sample.h5" other.h5 --requests 1:2 --layers 0:2 >/dev/null || exit 2
small=(--hidden 64 --intermediate 64)

# help of 80 columns, versions
for verb in replay fidelity measure devices; do
    expect 0 "$verb" --help
    [ "$(wc -L <out)" -le 80 ] || complain "help of $verb is wider than 80 columns"
    holds "moesim-device $verb" out
done
expect 0 --version
holds "host null" out
expect 0 devices
holds "checks the order of calls" out
expect 2 replays
holds "did you mean 'moesim-device replay'" err

# devices that are not there
expect 2 replay t.h5 --policy lru --cache 40 --device nul
holds "did you mean 'null'" err
expect 77 replay t.h5 --policy lru --cache 40 --device null --index 1
holds "device null" err
if ! nvidia-smi >/dev/null 2>&1 && "$device" --version | grep -q cuda; then
    expect 77 replay t.h5 --policy lru --cache 40
    holds "--device host" err
fi

# words that cannot be meant
on_null=(--device null "${small[@]}")
expect 2 replay t.h5 --cache 40 "${on_null[@]}"
holds "give --policy" err
expect 2 replay t.h5 --policy lru --cache 400 "${on_null[@]}"
expect 2 replay t.h5 --policy lru --cache 40 --hidden 100 --device null
holds "multiples of 64" err
expect 2 replay t.h5 --policy lru --cache 40 --as qwen3-30b-a3b --device null
holds "they must match" err
expect 2 replay t.h5 --policy lru --cache 40 --other on --device null
holds "give --as" err
expect 2 replay t.h5 --policy ideal --cache 40 "${on_null[@]}"
holds "reloads freely" err
for words in "--gpu-memory 0" "--host-pool 0"; do
    # shellcheck disable=SC2086
    expect 2 replay t.h5 --policy lru --cache 40 "${on_null[@]}" $words
    holds "'0' is below 1" err
done
expect 2 replay t.h5 --policy lru,oled,lru --cache 40 "${on_null[@]}"
holds "'lru' is given twice" err
expect 2 replay t.h5 --policy lru --cache 40 --bandwidth none,1e30 "${on_null[@]}"
holds "option --bandwidth: 1e30 is outside 1 MB/s to 10 TB/s" err
[ "$(grep -c '^cell' out)" -eq 0 ] || complain "cells are executed before a cap is refused"
expect 2 replay t.h5 --policy lru --cache 40 --requests 1:2 "${on_null[@]}"
expect 2 replay t.h5 --policy lru --cache 40 "${on_null[@]}" -o t.h5
expect 2 fidelity t.h5 --policy lru --cache 40 "${on_null[@]}"
holds "option -o is missing" err
expect 1 replay t.h5 --policy lru --cache 40 --device host "${small[@]}" --gpu-memory 100kB
holds "lower --cache" err

# a log: executed as the policy itself; of another trace, or with other words: refused
"$moesim" run t.h5 --policy lru --cache 40 --decisions log.h5 >/dev/null || exit 2
"$moesim" run other.h5 --policy lru --cache 40 --decisions other-log.h5 >/dev/null || exit 2
expect 0 replay t.h5 --decisions log.h5 "${on_null[@]}" -o raw.h5
expect 0 replay t.h5 --policy lru --cache 40 "${on_null[@]}" --mode live -o live.h5
expect 2 replay t.h5 --decisions other-log.h5 "${on_null[@]}"
holds "another trace" err
expect 2 replay t.h5 --decisions log.h5 --policy lru "${on_null[@]}"
expect 2 replay t.h5 --decisions log.h5 --mode live "${on_null[@]}"
expect 2 replay t.h5 --decisions log.h5 --warmup 1 "${on_null[@]}"
expect 1 replay t.h5 --decisions t.h5 "${on_null[@]}"
holds "not a decision log" err

# a file that is something else is neither read nor written over
cp log.h5 keep.h5
expect 1 replay t.h5 --policy lru --cache 40 "${on_null[@]}" -o keep.h5
cmp -s log.h5 keep.h5 || complain "-o wrote over a file of another kind"

# out of time, then interrupted, then gone on with: the cells of a grid that ran at once
grid=(fidelity t.h5 --policy naive,lru --cache 20,40 --bandwidth none,2 "${on_null[@]}" --repeat 15)
expect 0 "${grid[@]}" -o grid.h5 --time-limit 0.001
holds "out of time after 0 of 135 cells" out
"$device" "${grid[@]}" -o grid.h5 >out 2>err </dev/null &
running=$!
for _ in $(seq 600); do
    grep -q '^cell' out && break
    sleep .1
done
kill -TERM "$running"
wait "$running"
[ $? -eq 1 ] || complain "an interrupted grid does not end with status 1: $(cat err)"
holds "the same command goes on with it" err
expect 0 "${grid[@]}" -o grid.h5
holds "done     135 cells in grid.h5" out
expect 0 "${grid[@]}" -o grid.h5
[ "$(grep -c '^cell' out)" -eq 0 ] || complain "a finished grid is measured again"
expect 2 "${grid[@]}" -o grid.h5 --seed 5
holds "seed: 1 and 5" err
cp grid.h5 keep.h5
expect 2 "${grid[@]/20,40/20,60}" -o grid.h5
holds "holds another grid" err
expect 2 "${grid[@]}" -o grid.h5 --mode live
holds "holds another grid" err
cmp -s grid.h5 keep.h5 || complain "a file of another grid was changed"
ls -- *.tmp* .*tmp* 2>/dev/null && complain "temporary files are left"

exit "$bad"
