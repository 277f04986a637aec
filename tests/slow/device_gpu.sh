#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# By hand, on a machine with a GPU: the tests that all devices share, which must not skip cuda here, then the benchmarks. Takes
# a build made elsewhere with -Dstatic_deps=true; only bench_gpu_grouped needs more (libcublas, where the toolkit lies).
# usage: tests/slow/device_gpu.sh [BUILD]    BUILD: default $MOESIM_BUILD or build
set -u
build=${1:-${MOESIM_BUILD:-build}}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
failed=0

for folder in /usr/local/cuda/lib64 /usr/local/cuda-*/targets/x86_64-linux/lib; do
    [ -d "$folder" ] && LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder
done
export LD_LIBRARY_PATH

run() {
    printf '\n== %s\n' "$*"
    "$@" >"$log" 2>&1
    status=$?
    cat "$log"
    if [ "$status" -ne 0 ] || grep -q 'skipped: cuda' "$log"; then
        echo "== $1: status $status$(grep -q 'skipped: cuda' "$log" && echo ', cuda was skipped')"
        failed=$((failed + 1))
    fi
}

for test in kernel rules events measure; do
    CK_DEFAULT_TIMEOUT=300 run "$build/tests/unit/device/device_$test"
done
run "$build/tests/unit/cuda/cuda_kernels"
for bench in "bench_gpu_stream" "bench_gpu_stream 25165824" "bench_gpu_grouped" "bench_gpu_grouped 4096 1024"; do
    # shellcheck disable=SC2086
    if [ -x "$build/tests/bench/${bench%% *}" ]; then run "$build/tests/bench/"$bench; fi
done
if command -v compute-sanitizer >/dev/null 2>&1; then
    CK_FORK=no run compute-sanitizer --error-exitcode 9 "$build/tests/unit/device/device_events"
fi
printf '\ndevice checked: %d failures\n' "$failed"
[ "$failed" -eq 0 ]
