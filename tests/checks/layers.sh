#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Who may include whom: the table below against the real includes. Prints every offence, then the number of includes read.
# usage: layers.sh SOURCE_ROOT
set -eu
cd "$1"
folders=$(ls -d include base policies traces hwprofile sim plots replay study cli tests 2>/dev/null || true)
# shellcheck disable=SC2086
find $folders \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' \) | LC_ALL=C sort | xargs awk '
# project headers: folder of the including file -> folders it may include
BEGIN {
    allow["include"] = ""
    allow["base"] = "base moesim"
    allow["policy"] = "moesim kit"
    allow["registry"] = "moesim base policies kit"
    allow["traces"] = "moesim base traces"
    allow["hwprofile"] = "moesim base hwprofile"
    allow["raw"] = "base traces hwprofile"
    allow["sim"] = "moesim base traces sim profile"
    allow["plots"] = "base plots result"
    allow["replay"] = "moesim base traces hwprofile profile sim result replay"
    allow["study"] = "moesim base traces profile sim study"
    allow["cli"] = "moesim base traces hwprofile profile sim result plots policies replay study cli"
    allow["tests"] = "moesim base traces hwprofile profile sim result plots policies replay study cli tests kit"
    # library headers: pattern -> pattern of the files that may include them
    library["^hdf5"] = "^(traces|hwprofile|sim|tests)/"
    library["^H5"] = "^(traces|hwprofile|sim|tests)/"
    library["^zstd"] = "^(traces|tests)/"
    library["^zlib"] = "^(traces|tests)/"
    library["^nettle/"] = "^base/digest[.]c$"
    library["^gsl/"] = "^(sim/stats|hwprofile/fit|tests/unit/stats/)"
    library["^jansson"] = "^(hwprofile|cli|tests)/"
    library["^check[.]h$"] = "^tests/"
    library["^dlfcn[.]h$"] = "^(policies/|tests/)"
    library["^pthread[.]h$"] = "^(base|traces|hwprofile|sim|cli|tests)/"
    library["^cuda"] = "^(hwprofile/cuda/|tests/unit/cuda/|tests/bench/bench_gpu)"
    library["^cublas"] = "^tests/bench/bench_gpu_grouped[.]cu$"
}
function group(file) {
    if (file ~ /^policies\//) {
        if (file ~ /^policies\/kit/) return "include"
        if (file ~ /^policies\/(registry|spec|load)/) return "registry"
        return "policy"
    }
    if (file ~ /^hwprofile\/raw/) return "raw"
    sub(/\/.*/, "", file)
    return file
}
function target(header, folder) {
    if (header ~ /^policies\/kit/) return "kit"
    if (header == "hwprofile/profile.h" && FILENAME !~ /^hwprofile/) return "profile"
    if (header == "sim/result.h" && FILENAME !~ /^sim/) return "result"
    folder = header
    sub(/\/.*/, "", folder)
    return folder
}
/^[ \t]*#[ \t]*include[ \t]*"/ {
    split($0, part, "\"")
    read++
    from = group(FILENAME)
    to = target(part[2])
    if (FILENAME ~ /^policies\/kit/ && (to == "moesim" || to == "kit")) next
    if (part[2] !~ /\//) { printf "%s:%d: include \"%s\" without its folder\n", FILENAME, FNR, part[2]; bad++; next }
    if (index(" " allow[from] " ", " " to " ") == 0) {
        printf "%s:%d: %s/ may not include \"%s\"\n", FILENAME, FNR, from, part[2]; bad++
    }
}
/^[ \t]*#[ \t]*include[ \t]*</ {
    header = $0
    sub(/^[^<]*</, "", header); sub(/>.*/, "", header)
    read++
    for (pattern in library)
        if (header ~ pattern && FILENAME !~ library[pattern]) {
            printf "%s:%d: <%s> is not for this folder\n", FILENAME, FNR, header; bad++
        }
}
END { printf "layers checked: %d includes, %d offences\n", read, bad; exit bad > 0 || read == 0 }
'
