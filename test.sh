#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The whole fast suite. MOESIM_KNOWN_ANSWERS and MOESIM_TRACES name folders of published captures and further traces; tests
# that need them say so and are skipped where they are absent. Further arguments go to `meson test`.
set -euo pipefail
cd "$(dirname "$0")"
build=${MOESIM_BUILD:-build}
if [ ! -f "$build/build.ninja" ]; then
    meson setup "$build" >/dev/null
fi
ninja -C "$build" >/dev/null || { echo "test: the build failed: run ninja -C $build" >&2; exit 1; }
# Check gives a test four seconds, which a machine with other work does not always have.
export CK_TIMEOUT_MULTIPLIER=${CK_TIMEOUT_MULTIPLIER:-5}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
meson test -C "$build" --no-rebuild --print-errorlogs "$@" | tee "$log" || echo "test: meson test reported failures"
count() { awk -F: -v name="$1" '$1 == name { n = $2 + 0 } END { print n + 0 }' "$log"; }
passed=$(count Ok)
skipped=$(count Skipped)
failed=$(( $(count Fail) + $(count Timeout) + $(count 'Unexpected Pass') ))
grep -h 'checked:' "$build/meson-logs/testlog.txt" 2>/dev/null || true
echo "$passed passed, $failed failed, $skipped skipped"
[ "$passed" -gt 0 ] && [ "$failed" -eq 0 ]
