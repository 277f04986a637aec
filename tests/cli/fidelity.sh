#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# moesim replay and moesim fidelity from a trace to the report, on device null: what is executed and said, not how long it
# takes.
# usage: fidelity.sh MOESIM SOURCE_ROOT
set -u
moesim=$(realpath -e -- "$1") || exit 2
program=$moesim
root=$(realpath -e -- "$2") || exit 2
. "$(dirname -- "$0")/expect.sh"

small=(--hidden 64 --intermediate 64 --device null)
expect 0 trace select "$root/traces/samples/sample.h5" t.h5 --requests 0:1 --layers 0:2
expect 0 trace select "$root/traces/samples/sample.h5" other.h5 --requests 1:2 --layers 0:2

# a grid, its report, and the report again from the raw file, to the byte
expect 0 fidelity t.h5 --policy lru,oled --cache 40,100 "${small[@]}" --repeat 2 -o raw.h5 --csv cells.csv --markdown table.md
holds "counts    5 of 5 cells executed exactly what was predicted" out
holds "on lru:100 alone: sync" out
holds "GPU table" out
holds "no event tells it" out
holds "would change by more than a factor of 2, so it stays as measured" err
cp out first
while IFS= read -r line; do
    line=${line//[$'\x80'-$'\xbf']/}
    [ "${#line}" -le 80 ] || complain "longer than 80 columns: $line"
done <out
[ "$(grep -c ',test,1,2,' cells.csv)" -eq 3 ] || complain "three test cells of two repeats were expected"
[ "$(grep -c ',calibration,1,2,' cells.csv)" -eq 1 ] || complain "one calibration cell was expected"
[ "$(grep -c ',reference,1,2,' cells.csv)" -eq 1 ] || complain "one reference was expected"
holds "| full (reference) | 256 |" table.md
expect 0 fidelity --raw raw.h5
cmp -s first out || complain "a report from the raw file differs"

# the same grid once more executes nothing, and more repeats are added to it
cp raw.h5 before.h5
expect 0 fidelity t.h5 --policy lru,oled --cache 40,100 "${small[@]}" --repeat 3 -o raw.h5 --format csv
[ "$(grep -c ',1,3,' out)" -eq 5 ] || complain "five cells of three repeats were expected"

# what is fitted
expect 0 fidelity t.h5 --raw raw.h5 --calibrate none --format json
holds '"calibration": null' out
holds '"test_cells": 4' out
expect 0 fidelity t.h5 --raw raw.h5 --calibrate lru:40 --format json
for key in sync_fitted gpu_fitted gpu_factor gpu_events link_factor cpu_factor; do holds "\"$key\": " out; done
expect 0 fidelity t.h5 --raw raw.h5 --calibrate oled:40 --set link.alpha=1us
holds "on oled:40 alone: sync" out
holds "set link.alpha=1us" out
expect 2 fidelity --raw raw.h5 --calibrate oled:41
holds "the grid has no cell of policy oled at capacity 41" err
expect 2 fidelity --raw raw.h5 --calibrate oled
holds "is no POLICY:CACHE" err

# with --raw nothing is executed, and parts are not written over
expect 2 fidelity --raw raw.h5 --policy lru
holds "option --policy has no effect with --raw" err
expect 2 fidelity --raw raw.h5 -o other-raw.h5
holds "option --output has no effect with --raw" err
expect 2 fidelity --raw raw.h5,
holds "a name is empty" err
cp raw.h5 before.h5
expect 2 fidelity --raw before.h5,raw.h5 --csv raw.h5
holds "is the input itself" err
cmp -s raw.h5 before.h5 || complain "a part was written over"

# what the report could not do is found before anything is executed
for words in "--set no=1" "--calibrate lru:41" "--calibrate surv:40" "--calibrate lru" "--profile paper-a"; do
    # shellcheck disable=SC2086
    expect 2 fidelity t.h5 --policy lru,oled --cache 40,100 "${small[@]}" $words
    [ "$(grep -c '^cell' err)" -eq 0 ] || complain "$words: cells are executed first"
done
expect 1 fidelity t.h5 --policy lru --cache 40,100 "${small[@]}" --witness t.h5
holds "option --witness: t.h5: not a result" err
expect 0 fidelity t.h5 --policy lru --policy oled:adapt=on --cache 40,100 "${small[@]}" --repeat 1 \
    --calibrate oled:adapt=on:40
grep -q "raw.h5" err && complain "a file that is thrown away is named: $(grep raw.h5 err)"
expect 0 fidelity t.h5 --policy lru --cache 40,100 "${small[@]}" --repeat 1 -o a,b.h5
expect 2 fidelity t.h5 --policy lru --cache 40,100 "${small[@]}" --time-limit 0.001
holds "longer --time-limit" err

# a result, and figures of it
expect 0 fidelity --raw raw.h5 --result result.h5
grep -aq "lru:100: nothing, its events tell no constant" result.h5 || complain "the result should say that nothing was fitted"
if command -v gnuplot >/dev/null; then
    for figure in fidelity residuals; do
        expect 0 plot result.h5 "$figure" -o "$figure.svg"
        holds "measured" "$figure.svg"
    done
fi
expect 2 plot result.h5 tpot -o no.svg
holds "it is a result of kind fidelity" err

# one policy, by name and by its log
expect 0 replay t.h5 --policy surv --cache 60 "${small[@]}"
holds "counts    1 of 1 cells executed exactly what was predicted" out
expect 0 run t.h5 --policy surv --cache 60 --decisions log.h5
expect 0 replay t.h5 --decisions log.h5 "${small[@]}" -o replayed.h5
holds "counts    1 of 1 cells executed exactly what was predicted" out
expect 0 replay t.h5 --raw replayed.h5 --format json
holds '"policy": "surv"' out

# the profile that policies were told, which may lie elsewhere now
sed 's/"name": "[^"]*"/"name": "mine"/' "$root/hwprofile/profiles/h200-host.json" >mine.json
expect 0 fidelity t.h5 --policy lru,oled-full --cache 40 "${small[@]}" --profile ./mine.json -o told.h5 --format csv
cp out first.csv
mv mine.json moved.json
expect 2 fidelity --raw told.h5
holds "is not on this machine" err
holds "give its file with --told" err
for words in "--told ./moved.json" "--profile ./moved.json"; do
    # shellcheck disable=SC2086
    expect 0 fidelity --raw told.h5 $words --format csv
    cmp -s first.csv out || complain "another report with $words"
done
expect 0 replay --raw told.h5 --told ./moved.json --profile h200-host
holds "h200-host (sha256 " out
expect 2 fidelity --raw told.h5 --told h200-host --profile ./moved.json
holds "option --told: h200-host (sha256 " err
holds ") is not what the policies were told (./mine.json, sha256 " err
sed 's/"name": "[^"]*"/"name": "other"/' moved.json >mine.json
expect 2 fidelity --raw told.h5
holds "profile ./mine.json (sha256 " err
holds "give that one with --told" err
expect 0 fidelity --raw told.h5 --profile ./moved.json --format csv
cmp -s first.csv out || complain "another report beside a profile that took the place of the recorded one"
expect 2 fidelity --raw told.h5 --told ./moved.json --csv moved.json
expect 2 fidelity --raw raw.h5 --told ./moved.json
holds "were told no profile" err
expect 2 fidelity t.h5 --policy lru --cache 40 "${small[@]}" --told ./moved.json
holds "option --told goes with --raw" err

# warnings of a profile are said once, whoever reads it
sed 's/"times": \[[^,]*,/"times": [1e-3,/' moved.json >warned.json
expect 0 fidelity t.h5 --policy lru,oled-full --cache 40 "${small[@]}" --profile ./warned.json -o warned.h5
[ "$(grep -c 'more tokens cost less' err)" -eq 1 ] || complain "not one warning of a profile that is executed with: $(cat err)"
expect 0 fidelity --raw warned.h5
[ "$(grep -c 'more tokens cost less' err)" -eq 1 ] || complain "not one warning of a profile that was told: $(cat err)"

# a device that computes nothing bears no witness
expect 0 replay t.h5 --policy lru --cache 40 --hidden 64 --intermediate 64 --device host --threads 1 -o host.h5
expect 2 fidelity --raw host.h5 --witness raw.h5
holds "raw.h5 was made on device null" err

# what cannot be
expect 2 fidelity other.h5 --raw raw.h5
holds "is not the trace that was executed" err
expect 2 fidelity --policy lru --cache 40 --device null
holds "no trace to execute" err
expect 1 fidelity --raw t.h5
holds "not a result" err
expect 2 fidelity --raw raw.h5 --csv raw.h5
expect 2 fidelity t.h5 --policy lru --cache 40 --device nul -o no.h5
[ ! -e no.h5 ] || complain "a raw file of no device"
expect 2 fidelity --raw raw.h5 --profile paper-a
holds "has no constants for mode model" err

# a device that is not there is one sentence, and so is a device program that is killed
expect 77 replay t.h5 --policy lru --cache 40 --device null --index 1
holds "device null" err
mkdir killed
cp -- "$moesim" killed/moesim
printf '#!/bin/sh\nkill -KILL $$\n' >killed/moesim-device
chmod +x killed/moesim-device
killed/moesim replay t.h5 --policy lru --cache 40 --device null -o kept.h5 >out 2>err
[ $? -eq 1 ] || complain "a killed moesim-device does not end with status 1"
holds "was ended by signal 9; finished cells are in kept.h5" err

# alone, without its device program
mkdir alone
cp -- "$moesim" alone/moesim
PATH=/nonexistent alone/moesim replay t.h5 --policy lru --cache 40 --device null >out 2>err &&
    complain "replay without moesim-device"
holds "moesim-device" err
exit "$bad"
