#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a sweep saves: 8 policies × 24 capacities × 4 bandwidths on a trace repeated to REQUESTS requests, against the same cells
# run one by one; and what threads, four bandwidths and time cost. Ratios are of processor time, so that a machine with other
# work can be used; what a second core brings is real time, of a trace of SHORT requests. One by one runs every STRIDE-th
# capacity of every policy, times STRIDE; the cells at other bandwidths take as long as those at one.
# MOESIM_BENCH_UNDER: words before the runs that are timed by the clock (chrt -f 50: keeps other work away from them).
# usage: bench_sweep.sh MOESIM REPEAT_TRACE TRACE [REQUESTS [STRIDE [SHORT]]]
set -euo pipefail
LC_ALL=C
TIMEFORMAT='%U %S %R'
if [ $# -lt 3 ]; then
    echo "usage: bench_sweep.sh MOESIM REPEAT_TRACE TRACE [REQUESTS [STRIDE [SHORT]]]" >&2
    exit 2
fi
moesim=$(realpath -e -- "$1")
repeat=$(realpath -e -- "$2")
source=$(realpath -e -- "$3")
requests=${4:-1000}
stride=${5:-1}
short=${6:-100}
read -ra under <<<"${MOESIM_BENCH_UNDER:-}"
policies=lru,lfu,naive,oled,surv,random,lfru,belady
grid=(--policy "$policies" --cache 10:240:10)
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
cd -- "$work"
"$repeat" "$source" t.h5 "$requests"
"$repeat" "$source" short.h5 "$short"

# timed WORDS…: runs them; prints processor seconds and real seconds
timed() {
    { time "$@" >/dev/null 2>run.err || { cat run.err >&2; exit 1; }; } 2>&1 | awk '{ print $1 + $2, $3 }'
}

# keep NAME WORDS…: runs moesim WORDS; prints its seconds and keeps them in NAME.cpu and NAME.real
keep() {
    local name=$1 cpu real
    shift
    read -r cpu real < <(timed "$@")
    echo "$cpu" >"$name.cpu"
    echo "$real" >"$name.real"
    printf '%-46s %9.2f s of processor, %.2f s\n' "$name" "$cpu" "$real"
}

# ratio WHAT A B LIMIT: A/B of two files beside what is wanted
ratio() {
    awk -v what="$1" -v a="$(<"$2")" -v b="$(<"$3")" -v limit="$4" \
        'BEGIN { printf "%-46s %9.3f    wanted %s\n", what, a / b, limit }'
}

# one_by_one: processor seconds of all cells at one bandwidth, a run each
one_by_one() {
    local policy cache cpu real
    for policy in ${policies//,/ }; do
        for cache in $(seq $((10 * ((stride + 1) / 2))) $((10 * stride)) 240); do
            read -r cpu real < <(timed "$moesim" run t.h5 --policy "$policy" --cache "$cache" --bandwidth 32 --time model)
            echo "$cpu"
        done
    done | awk '{ sum += $1 } END { printf "%.2f\n", sum / NR * 192 }'
}

keep counts "$moesim" sweep t.h5 "${grid[@]}" -o r0.h5
keep one-bandwidth "$moesim" sweep t.h5 "${grid[@]}" --bandwidth 32 -o r1.h5
keep four-bandwidths /usr/bin/env time -o memory -f %M "$moesim" sweep t.h5 "${grid[@]}" --bandwidth 16,32,64,128 -o r4.h5
one_by_one >single.cpu
awk '{ print 4 * $1 }' single.cpu >singles.cpu
printf '%-46s %9.2f s of processor, from every %s. capacity\n' "192 cells one by one" "$(<single.cpu)" "$stride"
ratio "192 cells in one pass against one by one" one-bandwidth.cpu single.cpu "<= 0.7"
ratio "768 cells in one pass against one by one" four-bandwidths.cpu singles.cpu "<= 0.3"
ratio "time and counts against counts" one-bandwidth.cpu counts.cpu "<= 1.6"
ratio "four bandwidths against one, intervals included" four-bandwidths.cpu one-bandwidth.cpu "<= 1.15 in counting alone"
awk '{ printf "%-46s %9.1f MiB wanted < 512\n", "memory of the 768 cells", $1 / 1024 }' memory
for threads in 1 2 1 2; do
    keep "short-$threads" ${under[@]+"${under[@]}"} "$moesim" sweep short.h5 "${grid[@]}" --bandwidth 16,32,64,128 \
        --threads "$threads" -o "s$threads.h5"
done
cmp s1.h5 s2.h5
ratio "one thread against two, $short requests" short-1.real short-2.real ">= 1.8 on two cores"
