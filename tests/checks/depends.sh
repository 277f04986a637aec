#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A changed header rebuilds the CUDA sources that include it: ninja knows the headers of each of them.
# usage: depends.sh BUILD_ROOT
set -eu
cd "$1"
ninja -t deps | awk '
    /^[^ ].*: #deps/ { object = $1; cuda = object ~ /hwprofile\/cuda\/.*[.]cu[.]o:$/; if (cuda) { seen++; none[object] } }
    cuda && /hwprofile\/cuda\/.*[.]cuh$/ { delete none[object] }
    END {
        for (object in none) { print object " is not rebuilt when a header changes"; bad++ }
        printf "dependencies checked: %d CUDA objects, %d offences\n", seen, bad
        exit bad > 0
    }'
