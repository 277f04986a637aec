#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Exported symbols of our libraries begin with moesim_; GSL is used by libraries `stats` and `fit` alone; nothing here knows CUDA.
# usage: symbols.sh BUILD_ROOT
set -eu
cd "$1"
optional=$(ls -d hwprofile plots replay study 2>/dev/null || true)
offences=$(mktemp)
trap 'rm -f "$offences"' EXIT
seen=0
for archive in $(find base policies traces $optional sim -name 'lib*.a' | LC_ALL=C sort); do
    seen=$((seen + 1))
    nm -g --defined-only "$archive" 2>/dev/null | awk -v lib="$archive" '
        NF == 3 && $3 !~ /^(moesim_|__asan_|__odr_asan|__ubsan_|_GLOBAL__)/ {
            print lib ": exports " $3 " without the prefix moesim_" }' >>"$offences"
    nm -u "$archive" 2>/dev/null | awk -v lib="$archive" '
        $2 ~ /^gsl_/ && lib !~ /stats|fit/ { print lib ": uses " $2 "; GSL belongs in libraries stats and fit alone" }
        $2 ~ /^(cuda|cublas|cu[A-Z])/ { print lib ": uses " $2 "; CUDA has no place here" }' >>"$offences"
done
if [ -s "$offences" ]; then LC_ALL=C sort -u "$offences"; fi
printf 'symbols checked: %d libraries, %d offences\n' "$seen" "$(wc -l <"$offences")"
[ "$seen" -gt 0 ] && [ ! -s "$offences" ]
