#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Writes a C file that holds the given profiles byte for byte, in the order given.  usage: embed.sh OUTPUT PROFILE.json...
set -eu
output=$1
shift
{
    echo '/* SPDX-License-Identifier: Apache-2.0'
    echo ' *'
    echo ' * Generated from hwprofile/profiles by embed.sh.'
    echo ' */'
    echo '#include "hwprofile/parts.h"'
    i=0
    for file in "$@"; do
        printf '\nstatic const unsigned char text_%d[] = {\n' "$i"
        od -An -v -tu1 "$file" | sed 's/[0-9][0-9]*/&,/g; s/^ */    /'
        echo '};'
        i=$((i + 1))
    done
    printf '\nconst moesim_profile_text moesim_profile_texts[] = {\n'
    i=0
    for file in "$@"; do
        printf '    { "%s", text_%d, sizeof text_%d },\n' "$(basename "$file" .json)" "$i" "$i"
        i=$((i + 1))
    done
    echo '    { NULL, NULL, 0 },'
    echo '};'
    printf '\nconst char *const moesim_profile_text_names[] = {'
    for file in "$@"; do printf ' "%s",' "$(basename "$file" .json)"; done
    echo ' NULL };'
} >"$output"
