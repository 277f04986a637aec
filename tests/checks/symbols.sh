#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Exported symbols of our libraries begin with moesim_; GSL is used by the libraries stats and fit alone, CUDA by cuda and
# cuda_host alone. And the licences of both meet in no binary: moesim has no CUDA, moesim-device (and nothing beside it that
# has CUDA) no GSL.  usage: symbols.sh BUILD_ROOT
set -eu
cd "$1"
optional=$(ls -d hwprofile plots replay study 2>/dev/null || true)
offences=$(mktemp)
trap 'rm -f "$offences"' EXIT
seen=0
for archive in $(find base policies traces $optional sim -name 'lib*.a' | LC_ALL=C sort); do
    seen=$((seen + 1))
    # C++ (the cuda backend) writes moesim_name as _Z<length>moesim_name<types>; what is weak comes from its headers
    nm -g --defined-only "$archive" 2>/dev/null | awk -v lib="$archive" '
        NF == 3 && $2 !~ /^[WVu]$/ && $3 !~ /^(moesim_|__asan_|__odr_asan|__ubsan_|_GLOBAL__)/ &&
        !(lib ~ /cuda/ && $3 ~ /^(_Z[0-9]+(__device_stub__Z[0-9]+)?moesim_|__cuda|__fatbin)/) {
            print lib ": exports " $3 " without the prefix moesim_" }' >>"$offences"
    nm -u "$archive" 2>/dev/null | awk -v lib="$archive" '
        $2 ~ /^gsl_/ && lib !~ /(stats|fit)/ { print lib ": uses " $2 "; GSL belongs in the libraries stats and fit alone" }
        $2 ~ /^(cuda|cublas|cu[A-Z])/ && lib !~ /libmoesim_cuda/ {
            print lib ": uses " $2 "; CUDA has no place here" }' >>"$offences"
done

binaries=0
for binary in $(find cli tests -type f -perm -100 ! -name '*.*' | LC_ALL=C sort); do
    names=$(nm "$binary" 2>/dev/null | awk '
        $NF ~ /^(cuda[A-Z]|cublas[A-Z]|__cuda[A-Z])/ { cuda = 1 }
        $NF ~ /^gsl_/ { gsl = 1 }
        END { print (cuda ? "cuda" : "-") (gsl ? "gsl" : "-") (NR > 0 ? "" : "none") }')
    needed=$(readelf -d "$binary" 2>/dev/null | awk '/NEEDED/ && /lib(cuda|cudart|cublas|gsl)/ { print $NF }' | tr '\n' ' ')
    case $names in
    *none) continue ;;
    esac
    binaries=$((binaries + 1))
    case $names$needed in
    *cuda*gsl* | *gsl*cuda*) echo "$binary: has both GSL and CUDA: their licences do not meet" ;;
    esac >>"$offences"
    case $binary:$names$needed in
    cli/moesim:*cuda* | cli/moesim:*cublas*) echo "$binary: has CUDA: $names $needed" ;;
    cli/moesim-device:*gsl*) echo "$binary: has GSL: $names $needed" ;;
    esac >>"$offences"
done
if [ -s "$offences" ]; then LC_ALL=C sort -u "$offences"; fi
printf 'symbols checked: %d libraries, %d binaries, %d offences\n' "$seen" "$binaries" "$(wc -l <"$offences")"
[ "$seen" -gt 0 ] && [ "$binaries" -gt 0 ] && [ ! -s "$offences" ]
