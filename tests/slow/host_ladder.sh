#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# By hand, on a machine without other work: how far the prediction is from the host backend, with this machine's own profile.
# Experts are small (1024 x 256) and layers few, so that a grid takes minutes: five policies at four capacities. Smaller ones
# would measure how long threads take to wake up. What others do on the same server comes and goes within ten seconds: so cells
# are short (two layers) and repeated often (an even number: forward and backward, a slow drift cancels), and samples are taken
# in rounds. The profile, the raw file and the report stay in FOLDER; a grid that is there is gone on with.
# usage: tests/slow/host_ladder.sh TRACE FOLDER [BUILD]    TRACE: recorded, such as gsm8k-b16.h5; BUILD: default build
set -eu
trace=$1 out=$2 build=${3:-${MOESIM_BUILD:-build}}
mkdir -p "$out"
sizes="--hidden 1024 --intermediate 256 --threads 1"
[ -f "$out/ladder.h5" ] ||
    "$build/cli/moesim" trace select "$trace" "$out/ladder.h5" --requests 0:1 --layers 0:2 --compression gzip
# shellcheck disable=SC2086
if [ ! -f "$out/profile.json" ]; then
    "$build/cli/moesim-device" measure --device host --as llada2.0-mini $sizes --other off --rounds 6 -o "$out/raw.h5"
    "$build/cli/moesim" profile fit "$out/raw.h5" -o "$out/profile.json"
fi
# shellcheck disable=SC2086
"$build/cli/moesim" fidelity "$out/ladder.h5" --policy naive,lru,oled,oled-full,surv --cache 20,40,60,100 --device host $sizes \
    --repeat 8 --profile "$out/profile.json" -o "$out/grid.h5" --csv "$out/cells.csv" >"$out/report.txt"
cat "$out/report.txt"
