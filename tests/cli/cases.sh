#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Black-box tests from files: cases/NAME.cmd is a shell script, NAME.out and NAME.err are what it must print (nothing where
# absent), NAME.exit its exit status (0 where absent). `moesim` is on PATH; the working folder is empty but for sample.h5,
# bad.h5 and, where the case names it, raw.h5 (samples of a made-up machine) or every.h5 (a small made-up trace with every
# optional column).
# usage: cases.sh MOESIM SOURCE_ROOT [--rewrite] [NAME…]
set -euo pipefail
shopt -s nullglob
LC_ALL=C
timeout_s=120

rewrite=no
words=()
for word; do
    if [ "$word" = --rewrite ]; then rewrite=yes; else words+=("$word"); fi
done
if [ "${#words[@]}" -lt 2 ]; then
    echo "usage: cases.sh MOESIM SOURCE_ROOT [--rewrite] [NAME…]" >&2
    exit 2
fi
moesim=$(realpath -e -- "${words[0]}")
root=$(realpath -e -- "${words[1]}")
cases=$root/tests/cli/cases

work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT

# What every working folder begins with.
mkdir "$work/fresh"
ln -s "$root/traces/samples/sample.h5" "$work/fresh/sample.h5"
for ((line = 0; line < 64; line++)); do
    echo "this is no HDF5 file"
done >"$work/fresh/bad.h5"

# All that a case sees of the environment.
environment=("PATH=${moesim%/*}:/usr/bin:/bin" LC_ALL=C.UTF-8 HOME=/nonexistent)
for name in ASAN_OPTIONS UBSAN_OPTIONS LSAN_OPTIONS; do
    if [ -n "${!name+set}" ]; then environment+=("$name=${!name}"); fi
done

# Runs case NAME; leaves what it printed in $mine/out and $mine/err, its exit status in $status. The case prints into pipes:
# a limit on file sizes, which a case may set, must not reach what is collected here.
run_case() {
    local folder=$mine/case.$1 script
    cp -RP -- "$work/fresh" "$folder"
    IFS= read -r -d '' script <"$cases/$1.cmd" || true    # true to the last byte, unlike $(…)
    if [[ $script == *raw.h5* ]]; then ln -s "$root/tests/cli/raw.h5" "$folder/raw.h5"; fi
    if [[ $script == *every.h5* ]]; then ln -s "$root/tests/cli/every.h5" "$folder/every.h5"; fi
    status=0
    {
        (cd -- "$folder" && exec timeout -k 5 "$timeout_s" /bin/sh -c "$script") \
            </dev/null 2>&3 3>&- | cat >"$mine/out"
    } 3>&1 | cat >"$mine/err" || status=$?    # pipefail: that of the case
}

# same EXPECTED PRINTED: byte by byte; nothing may be printed where EXPECTED is absent. Text is compared without a process; a
# zero byte, at which `read` stops, leaves it to cmp.
same() {
    local expected printed
    if [ ! -e "$1" ]; then
        [ ! -s "$2" ]
    elif IFS= read -r -d '' expected <"$1" || IFS= read -r -d '' printed <"$2"; then
        cmp -s -- "$1" "$2"
    else
        [ "$expected" = "$printed" ]
    fi
}

# Reports how WHAT differs: show WHAT EXPECTED PRINTED.
show() {
    local expected=$2
    [ -e "$expected" ] || expected=/dev/null
    diff -a -u --label "$1 expected" --label "$1 printed" -- "$expected" "$3" || true
}

# Compares the run with the files of case NAME; says what differs, and returns 1 where something does.
compare() {
    local base=$cases/$1 exit_expected=0 ok=0
    if [ -e "$base.exit" ]; then read -r exit_expected <"$base.exit"; fi
    same "$base.out" "$mine/out" && same "$base.err" "$mine/err" && [ "$status" = "$exit_expected" ] || ok=1
    if [ "$ok" -ne 0 ]; then
        echo "FAILED $1"
        show stdout "$base.out" "$mine/out"
        show stderr "$base.err" "$mine/err"
        [ "$status" = "$exit_expected" ] || echo "exit status $status, expected $exit_expected"
        [ "$status" -ne 124 ] || echo "(124: ran longer than $timeout_s s)"
    fi
    return "$ok"
}

# Makes what the run printed the expectation of case NAME.
rewrite_case() {
    local base=$cases/$1 kind
    if [ "$status" -eq 0 ]; then : >"$mine/exit"; else echo "$status" >"$mine/exit"; fi
    for kind in out err exit; do
        if [ -s "$mine/$kind" ]; then cp -- "$mine/$kind" "$base.$kind"; else rm -f -- "$base.$kind"; fi
    done
}

# worker K: runs every `workers`-th case from the K-th on; prints what fails, and leaves the counts in $work/K/counts.
worker() {
    local i name checked=0 failed=0 inherited
    mine=$work/$1
    mkdir "$mine"
    mapfile -t inherited < <(compgen -e)
    unset -v "${inherited[@]}"
    export "${environment[@]}"
    for ((i = $1; i < ${#names[@]}; i += workers)); do
        name=${names[i]}
        if [ ! -f "$cases/$name.cmd" ]; then
            echo "FAILED $name: there is no $cases/$name.cmd"
            failed=$((failed + 1))
            continue
        fi
        run_case "$name"
        checked=$((checked + 1))
        if [ "$rewrite" = yes ]; then
            rewrite_case "$name"
        elif ! compare "$name"; then
            failed=$((failed + 1))
        fi
    done
    echo "$checked $failed" >"$mine/counts"
}

names=("${words[@]:2}")
if [ "${#names[@]}" -eq 0 ]; then
    for file in "$cases"/*.cmd; do
        file=${file##*/}
        names+=("${file%.cmd}")
    done
fi
workers=$(nproc)
for ((k = 0; k < workers; k++)); do
    worker "$k" >"$work/report.$k" &
done
wait
checked=0
failed=0
for ((k = 0; k < workers; k++)); do
    cat -- "$work/report.$k"
    read -r checked_here failed_here <"$work/$k/counts"
    checked=$((checked + checked_here))
    failed=$((failed + failed_here))
done
for file in "$cases"/*.out "$cases"/*.err "$cases"/*.exit; do
    if [ ! -e "${file%.*}.cmd" ]; then
        echo "FAILED ${file##*/}: an expectation without a case"
        failed=$((failed + 1))
    fi
done
echo "cli cases checked: $checked, $failed failed"
[ "$checked" -gt 0 ] && [ "$failed" -eq 0 ]
