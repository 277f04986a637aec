#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The slow tier: mutation fuzzing, brute force and random traces over many seeds, memory over a trace of 5 million events.
# usage: tests/slow/run.sh [MINUTES]   MINUTES (default 30) bounds the part over seeds; MOESIM_BUILD names the build folder.
set -eu
cd "$(dirname "$0")/../.."
build=${MOESIM_BUILD:-build}
minutes=${1:-30}
[ -f "$build/build.ninja" ] || meson setup "$build" >/dev/null
ninja -C "$build" >/dev/null
end=$(($(date +%s) + minutes * 60))
seed=100000
rounds=0
while [ "$(date +%s)" -lt "$end" ]; do
    "$build/tests/property/property_brute" 1000 "$seed"
    "$build/tests/property/property_differential" 300 "$seed"
    "$build/tests/property/property_inequalities" 30 "$seed"
    "$build/tests/fuzz/fuzz_mutate" 5000 "$seed" traces/samples/sample.h5
    seed=$((seed + 1000))
    rounds=$((rounds + 1))
done
"$build/tests/slow/slow_memory" "$build/cli/moesim"
echo "slow tier checked: $rounds rounds of seeds, memory"
