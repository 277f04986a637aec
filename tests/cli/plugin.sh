#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The zstd plug-in as a user of h5dump and h5py meets it: the line that `moesim trace plugin-path` prints works for the
# program as built, as installed, and after the installed tree was moved; without it zstd is not read.
# usage: plugin.sh MOESIM SOURCE_ROOT PLUGIN INSTALLED; the last is the plug-in's folder below the prefix, "" if elsewhere
set -euo pipefail
LC_ALL=C
moesim=$(realpath -e -- "$1")
root=$(realpath -e -- "$2")
plugin=$(realpath -e -- "$3")
installed=$4
unset HDF5_PLUGIN_PATH
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
cd "$work"

fail() {
    echo "$*"
    exit 1
}

"$moesim" trace convert "$root/traces/samples/sample.h5" zstd.h5 >out
"$moesim" trace convert "$root/traces/samples/sample.h5" gzip.h5 --compression gzip >out
programs=()
if command -v h5dump >/dev/null; then programs+=(h5dump); fi
for python in python3 /usr/bin/python3; do
    if "$python" -c 'import h5py' 2>/dev/null; then programs+=("$python"); fi
done

# A plug-in with sanitizers needs their run-time in the program that loads it, whose own leaks are no business of ours.
runtime=$(ldd "$plugin" | awk '/libasan/ { print $3 }')

# read PROGRAM FILE: the kinds of all passes and some ids, as that program shows them.
read_with() {
    local LD_PRELOAD=$runtime ASAN_OPTIONS=detect_leaks=0
    export LD_PRELOAD ASAN_OPTIONS
    if [ "$1" = h5dump ]; then
        h5dump -d /pass/kind "$2" | tail -n +2 && h5dump -d /routing/expert -c 40,1,8 "$2" | tail -n +2
    else
        "$1" -c 'import h5py, sys
f = h5py.File(sys.argv[1], "r")
print(f["pass/kind"][:].tolist(), f["routing/expert"][:40].tolist())' "$2"
    fi
}

# check MOESIM FOLDER: the line names the folder, and with it every program reads the same as from gzip.
check() {
    local line program
    line=$("$1" trace plugin-path)
    [ "$("$1" trace plugin-path --folder)" = "$2" ] || fail "$1: --folder: $("$1" trace plugin-path --folder), expected $2"
    (
        eval "$line"
        [ "$HDF5_PLUGIN_PATH" = "$2" ] || fail "HDF5_PLUGIN_PATH is $HDF5_PLUGIN_PATH, expected $2"
        for program in "${programs[@]}"; do
            read_with "$program" zstd.h5 >zstd.out
            read_with "$program" gzip.h5 >gzip.out
            [ -s gzip.out ] || fail "$program printed nothing"
            cmp zstd.out gzip.out
        done
        # again, and before what is there: nothing is named twice, nothing is lost
        eval "$("$1" trace plugin-path)"
        [ "$HDF5_PLUGIN_PATH" = "$2" ] || fail "named twice: $HDF5_PLUGIN_PATH"
        export HDF5_PLUGIN_PATH="/some where:/it's"
        eval "$("$1" trace plugin-path)"
        [ "$HDF5_PLUGIN_PATH" = "$2:/some where:/it's" ] || fail "HDF5_PLUGIN_PATH became $HDF5_PLUGIN_PATH"
    )
}

for program in "${programs[@]}"; do
    if read_with "$program" zstd.h5 >zstd.out 2>zstd.err && cmp -s zstd.out <(read_with "$program" gzip.h5); then
        echo "$program reads zstd without the plug-in (it has another one)"
    fi
done
check "$moesim" "${plugin%/*}"

if [ -n "$installed" ]; then
    for prefix in "$work/prefix" "$work/it's moved \$HOME"; do
        mkdir -p "$prefix/bin" "$prefix/$installed"
        cp -- "$moesim" "$prefix/bin/moesim"
        cp -- "$plugin" "$prefix/$installed"
        check "$prefix/bin/moesim" "$prefix/$installed"
        rm -r -- "$prefix"
    done
fi

# Without the plug-in the error says what else there is; a folder that HDF5 cannot be told is no answer.
mkdir alone
cp -- "$moesim" alone/moesim
if alone/moesim trace plugin-path >out 2>err; then
    echo "this plug-in is installed on this machine: its absence was not tested"
else
    [[ $(<err) == *"--compression gzip"* ]] || fail "no remedy: $(<err)"
    [ ! -s out ] || fail "printed a line all the same"
fi
mkdir -p a:b/cli a:b/traces
cp -- "$moesim" a:b/cli
cp -- "$plugin" a:b/traces
if a:b/cli/moesim trace plugin-path >out 2>err; then fail "a folder with ':' was printed: $(<out)"; fi
echo "plug-in checked with ${programs[*]:-no program of HDF5}"
