#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a sweep saves: 8 policies × 24 capacities × 4 bandwidths on a trace repeated to REQUESTS requests, against the same cells
# run one by one; and what threads, four bandwidths and time cost. usage: bench_sweep.sh MOESIM REPEAT_TRACE TRACE [REQUESTS]
set -euo pipefail
LC_ALL=C
TIMEFORMAT=%R
if [ $# -lt 3 ]; then
    echo "usage: bench_sweep.sh MOESIM REPEAT_TRACE TRACE [REQUESTS]" >&2
    exit 2
fi
moesim=$(realpath -e -- "$1")
repeat=$(realpath -e -- "$2")
source=$(realpath -e -- "$3")
requests=${4:-1000}
policies=lru,lfu,naive,oled,surv,random,lfru,belady
caches=10:240:10
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
cd -- "$work"
"$repeat" "$source" t.h5 "$requests"

# seconds NAME WORDS…: runs moesim WORDS; prints and keeps its seconds in NAME.s
seconds() {
    local name=$1 taken
    shift
    taken=$({ time "$moesim" "$@" >"$name.out" 2>"$name.err" || { cat "$name.err" >&2; exit 1; }; } 2>&1)
    echo "$taken" >"$name.s"
    printf '%-46s %8.2f s\n' "$name" "$taken"
}

# ratio WHAT A B LIMIT: A/B beside what is wanted
ratio() {
    awk -v what="$1" -v a="$(<"$2.s")" -v b="$(<"$3.s")" -v limit="$4" \
        'BEGIN { printf "%-46s %8.2f    wanted %s\n", what, a / b, limit }'
}

one_by_one() {
    local policy cache bandwidth total=0 taken
    for policy in ${policies//,/ }; do
        for cache in $(seq 10 10 240); do
            for bandwidth in "$@"; do
                taken=$({ time "$moesim" sweep t.h5 --policy "$policy" --cache "$cache" --bandwidth "$bandwidth" --threads 2 \
                    -o one.h5 >/dev/null; } 2>&1)
                total=$(awk -v a="$total" -v b="$taken" 'BEGIN { print a + b }')
            done
        done
    done
    echo "$total"
}

grid=(sweep t.h5 --policy "$policies" --cache "$caches")
seconds one-bandwidth "${grid[@]}" --bandwidth 32 --threads 2 -o r1.h5
seconds four-bandwidths "${grid[@]}" --bandwidth 16,32,64,128 --threads 2 -o r4.h5
seconds four-bandwidths-one-thread "${grid[@]}" --bandwidth 16,32,64,128 --threads 1 -o r4a.h5
cmp r4.h5 r4a.h5
seconds counts "${grid[@]}" --threads 2 -o r0.h5
ratio "time on top of counts" one-bandwidth counts "≤ 1.6"
ratio "four bandwidths against one" four-bandwidths one-bandwidth "≤ 1.15 in counting work"
ratio "one thread against two" four-bandwidths-one-thread four-bandwidths "≥ 1.8 on two cores"
one_by_one 32 >single.s
printf '%-46s %8.2f s\n' "192 cells one by one" "$(<single.s)"
awk '{ print 4 * $1 }' single.s >singles.s
ratio "192 cells in one pass against one by one" one-bandwidth single "≤ 0.7"
ratio "768 cells in one pass against one by one" four-bandwidths singles "≤ 0.3 (one by one: 4 x 192)"
/usr/bin/env time -f '%M KiB at most' "$moesim" "${grid[@]}" --bandwidth 16,32,64,128 --threads 2 -o r4.h5 >/dev/null ||
    echo "no program time: memory not measured"
