#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# All benchmarks, each with its machine, its flags and the limits that it is held against.
# usage: tests/bench/run.sh [REQUESTS [STRIDE]]   REQUESTS (default 1000, 0: leave it out) is the length of the sweep's trace,
# of whose cells every STRIDE-th capacity (default 8) is run one by one too; MOESIM_BUILD names the build folder.
set -eu
cd "$(dirname "$0")/../.."
build=${MOESIM_BUILD:-build}
requests=${1:-1000}
stride=${2:-8}
trace=${MOESIM_TRACES:-traces/samples}/sample.h5
if [ -f "${MOESIM_TRACES:-}/gsm8k-b16.h5" ]; then trace=$MOESIM_TRACES/gsm8k-b16.h5; fi
[ -f "$build/build.ninja" ] || meson setup "$build" >/dev/null
ninja -C "$build" >/dev/null
for bench in bench_read bench_generate bench_build bench_policies bench_dispatch bench_timing bench_cpu_expert; do
    printf '\n== %s\n' "$bench"
    "$build/tests/bench/$bench"
done
if [ "$requests" -gt 0 ]; then
    printf '\n== bench_sweep, %s repeated to %s requests\n' "$trace" "$requests"
    tests/bench/bench_sweep.sh "$build/cli/moesim" "$build/tests/bench/repeat_trace" "$trace" "$requests" "$stride"
fi
