#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Commit messages: `area: imperative, lower case`, no final dot, at most 60 characters, an empty second line and a body.
set -eu
cd "$(dirname "$0")/.."
git log --no-merges --format='%h%x09%s%x09%b%x1e' | awk -v RS='\036' -F'\t' '
    { sub(/^\n/, "", $1) }
    $1 == "" { next }
    {
        read++
        if (length($2) > 60) { print $1 ": subject longer than 60: " $2; bad++ }
        if ($2 !~ /^[a-z0-9.\/, -]+: [^A-Z ]/) { print $1 ": not `area: imperative, lower case`: " $2; bad++ }
        if ($2 ~ /[.]$/) { print $1 ": final dot: " $2; bad++ }
        if ($3 ~ /^[ \n]*$/) { print $1 ": no body that says why: " $2; bad++ }
    }
    END { printf "commits checked: %d, %d offences\n", read, bad; exit bad > 0 || read == 0 }'
