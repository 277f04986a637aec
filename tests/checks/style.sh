#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What CONTRIBUTING.md promises of every source file: white space, lengths, banned calls, complexity (where pmccabe is there).
# usage: style.sh SOURCE_ROOT
set -eu
cd "$1"
optional=$(ls -d hwprofile plots replay study 2>/dev/null || true)
max_file=400
max_line=128
max_function=60
max_complexity=15
offences=$(mktemp)
trap 'rm -f "$offences"' EXIT

sources=$(find include base policies traces $optional sim cli tests \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' \
    -o -name '*.sh' -o -name meson.build \) |
    LC_ALL=C sort)
# shellcheck disable=SC2086
awk -v max_file=$max_file -v max_line=$max_line '
    function columns(text, copy) { copy = text; gsub(/[\200-\277]/, "", copy); return length(copy) }
    FNR == 1 && FILENAME ~ /[.]([ch]|cuh?)$/ && $0 !~ /SPDX-License-Identifier: Apache-2.0/ {
        print FILENAME ":1: no licence line" }
    /\t/ { print FILENAME ":" FNR ": tab" }
    /[ \t]+$/ { print FILENAME ":" FNR ": trailing white space" }
    /\r/ { print FILENAME ":" FNR ": carriage return" }
    /\342\200[\213-\217\252-\256]|\357\273\277/ { print FILENAME ":" FNR ": invisible character" }
    columns($0) > max_line { print FILENAME ":" FNR ": longer than " max_line " columns" }
    FNR == max_file + 1 { print FILENAME ": longer than " max_file " lines" }
    /(TODO|FIXME|(^|[^X])XXX([^X]|$))/ && FILENAME !~ /style.sh$/ { print FILENAME ":" FNR ": unfinished business" }
' $sources >>"$offences"

for file in $sources; do
    [ -z "$(tail -c 1 "$file")" ] || echo "$file: no newline at the end"
done >>"$offences"

# Calls that have a better form, with the better form.
code=$(find include base policies traces $optional sim cli \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' \) |
    LC_ALL=C sort)
# shellcheck disable=SC2086
LC_ALL=C awk '
    BEGIN {
        n = split("sprintf=snprintf vsprintf=vsnprintf strcpy=memcpy strcat=snprintf strtok=strspn gets=fgets " \
            "atoi=moesim_parse_i64 atol=moesim_parse_i64 atof=moesim_parse_real " \
            "rand=moesim_rng srand=moesim_rng random=moesim_rng gmtime=gmtime_r localtime=localtime_r " \
            "tmpnam=moesim_output_open mktemp=moesim_output_open alloca=moesim_alloc " \
            "system=posix_spawn popen=posix_spawn setlocale=nothing", rows, " ")
        for (i = 1; i <= n; i++) { split(rows[i], pair, "="); better[pair[1]] = pair[2] }
    }
    {   # neither strings nor comments count
        line = $0
        gsub(/"([^"\\]|\\.)*"/, "\"\"", line)
        sub(/\/\/.*/, "", line); sub(/^[ \t]*\*.*/, "", line); sub(/\/\*.*/, "", line)
    }
    { for (call in better) if (match(line, "(^|[^A-Za-z0-9_.>])" call "[ ]*\\("))
          print FILENAME ":" FNR ": " call "() is banned; use " better[call] }
    # a forked child (traces/oldformat.c) and the second signal (base/log.c) may end their own process
    FILENAME !~ /^cli\/|^traces\/oldformat[.]c$|^base\/log[.]c$/ && line ~ /(^|[^A-Za-z0-9_])(exit|_exit|abort)[ ]*\(/ {
        print FILENAME ":" FNR ": only cli/ may end the process" }
    line ~ /-ffast-math/ { print FILENAME ":" FNR ": fast-math" }
' $code >>"$offences"

if command -v pmccabe >/dev/null 2>&1; then
    bodies=$(find base policies traces $optional sim cli \( -name '*.c' -o -name '*.cu' \) | LC_ALL=C sort)
    # columns: modified complexity, complexity, statements, first line, lines, file(line): function
    # shellcheck disable=SC2086
    pmccabe $bodies 2>/dev/null | awk -v lines=$max_function -v cyclo=$max_complexity '
        $5 > lines { print $6 " " $7 ": " $5 " lines, at most " lines }
        $1 > cyclo { print $6 " " $7 ": complexity " $1 ", at most " cyclo }' >>"$offences"
else
    echo "style: pmccabe is not installed, function length and complexity were not checked"
fi

if [ -s "$offences" ]; then cat "$offences"; fi
printf 'style checked: %d files, %d offences\n' "$(echo "$sources" | wc -w)" "$(wc -l <"$offences")"
[ ! -s "$offences" ]
