#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The whole way on this machine: measure the host device with small experts, fit, price a run. Asserts no times.
# usage: host.sh MOESIM SOURCE_ROOT
set -eu
moesim=$1
root=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"$moesim" profile measure --device host --as llada2.0-mini --hidden 256 --intermediate 64 --host-pool 32MiB --gpu-memory 6MiB \
    --other off --quick -o raw.h5 >measured
grep -q 'next: moesim profile fit raw.h5' measured
for kind in copy to_host to_device cpu read grouped empty event_hits event_moved event_cpu event_both joint_cpu joint_link; do
    grep -q "^$kind " measured || { echo "nothing of kind $kind was measured"; exit 1; }
done
"$moesim" profile fit raw.h5 -o here.json >fitted
grep -q '^here (provisional)' fitted
grep -q "raw sha256 $(sha256sum raw.h5 | cut -c1-64)" fitted
"$moesim" profile fit raw.h5 -o again.json --name here >fitted2
sed 's/again/here/' fitted2 | cmp - fitted
"$moesim" run "$root/traces/samples/sample.h5" --policy lru --cache 40 --profile ./here.json --format csv >run.csv
test "$(wc -l <run.csv)" -eq 2
echo "host measured: $(grep -c . measured) lines, profile $(wc -c <here.json) bytes"
