#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every header compiles alone, as C11 and as C++17.  usage: headers.sh SOURCE_ROOT CC CXX
set -eu
cd "$1"
optional=$(ls -d hwprofile plots replay study 2>/dev/null || true)
cc=$2
cxx=$3
bad=0
seen=0
flags="-D_GNU_SOURCE -Wall -Wextra -Werror -I. -Iinclude $(pkg-config --cflags hdf5)"
compile() {
    # shellcheck disable=SC2086
    printf '#include "%s"\n' "$header" | $1 $flags -fsyntax-only - || {
        echo "$header: does not compile alone ($1)"
        bad=$((bad + 1))
    }
}
for header in $(find include base policies traces $optional sim cli -name '*.h' | LC_ALL=C sort); do
    seen=$((seen + 1))
    compile "$cc -std=c11 -x c"
    if [ -n "$cxx" ]; then compile "$cxx -std=c++17 -x c++"; fi
done
echo "headers checked: $seen, $bad offences"
[ "$seen" -gt 0 ] && [ "$bad" -eq 0 ]
