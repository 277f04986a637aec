#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Writes a C file that holds the given templates byte for byte, in the order given.  usage: embed.sh OUTPUT TEMPLATE.gp...
set -eu
output=$1
shift
{
    echo '/* SPDX-License-Identifier: Apache-2.0'
    echo ' *'
    echo ' * Generated from the templates of plots by embed.sh.'
    echo ' */'
    echo '#include "plots/drawing.h"'
    i=0
    for file in "$@"; do
        printf '\nstatic const unsigned char text_%d[] = {\n' "$i"
        od -An -v -tu1 "$file" | sed 's/[0-9][0-9]*/&,/g; s/^ */    /'
        echo '};'
        i=$((i + 1))
    done
    printf '\nconst moesim_plot_template moesim_plot_templates[] = {\n'
    i=0
    for file in "$@"; do
        printf '    { "%s", text_%d, sizeof text_%d },\n' "$(basename "$file" .gp)" "$i" "$i"
        i=$((i + 1))
    done
    echo '    { NULL, NULL, 0 },'
    echo '};'
} >"$output"
