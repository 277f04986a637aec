#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What golden text cannot say about the command line: widths of help, README, files left behind, threads, interruption.
# json_schema.c checks the figures. usage: checks.sh MOESIM SOURCE_ROOT
set -u
LC_ALL=C
if [ $# -ne 2 ]; then
    echo "usage: checks.sh MOESIM SOURCE_ROOT" >&2
    exit 2
fi
MOESIM=$(realpath -e -- "$1") || exit 2
ROOT=$(realpath -e -- "$2") || exit 2
SAMPLE=$ROOT/traces/samples/sample.h5
SKIPPED=77
work=$(mktemp -d) || exit 2
trap 'rm -rf -- "$work"' EXIT

# Ends the test, which is a subshell.
fail() {
    echo "$*"
    exit 1
}

skip() {
    echo "skipped $test: $*"
    exit "$SKIPPED"
}

# moesim NAME WORDS…: runs it; leaves what it printed in NAME.out and NAME.err, its exit status in $status.
moesim() {
    local name=$1
    shift
    status=0
    "$MOESIM" "$@" </dev/null >"$name.out" 2>"$name.err" || status=$?
}

# The same for a run that must succeed.
succeed() {
    moesim "$@"
    [ "$status" -eq 0 ] || fail "moesim ${*:2}: exit status $status: $(<"$1.err")"
}

same() {
    cmp -- "$1" "$2" || fail "${*:3}: the output differs"
}

# Every line of FILE has at most 80 characters, the path of the sample aside. Bytes that continue a UTF-8 character do not
# count.
fits_80_columns() {
    local line
    while IFS= read -r line || [ -n "$line" ]; do
        line=${line//"$SAMPLE"/}
        line=${line//[$'\x80'-$'\xbf']/}
        [ "${#line}" -le 80 ] || fail "longer than 80 columns: $line"
    done <"$1"
}

# Adds the commands below WORDS, groups included, to the array `commands`: "run", "trace", "trace info", …
collect_commands() {
    local text line name
    moesim listing "$@" --help
    text=$(<listing.out)
    [[ $text == *$'\nCommands:\n'* ]] || return 0
    text=${text#*$'\nCommands:\n'}
    text=${text%%$'\n\n'*}
    while IFS= read -r line; do
        [[ $line =~ ^'  '([a-z]+(-[a-z]+)*) ]] || continue
        name=${BASH_REMATCH[1]}
        commands+=("${*:+$* }$name")
        collect_commands "$@" "$name"
    done <<<"$text"
}

# contains WORD LIST…
contains() {
    local word
    for word in "${@:2}"; do
        [ "$word" != "$1" ] || return 0
    done
    return 1
}

check_every_help_is_complete_and_fits_80_columns() {
    local commands=() command words
    collect_commands
    contains run "${commands[@]}" || fail "moesim --help does not list run"
    contains "trace info" "${commands[@]}" || fail "moesim trace --help does not list info"
    for command in "" "${commands[@]}"; do
        read -r -a words <<<"$command"
        succeed option "${words[@]}" --help
        [ ! -s option.err ] || fail "moesim $command --help: wrote to standard error: $(<option.err)"
        [[ $(<option.out) == "Usage: moesim"* ]] || fail "moesim $command --help: does not begin with the usage"
        fits_80_columns option.out
        moesim word help "${words[@]}"
        same option.out word.out "moesim $command --help, moesim help $command"
    done
}

# Adds what the README calls to `named`: `moesim trace info|head` gives "trace", "trace info" and "trace head".
collect_named() {
    local rest line first second
    while IFS= read -r line; do
        while [[ $line =~ moesim' '([a-z]+)((' '[a-z]+(-[a-z]+)*(\\?\|[a-z]+)*)?) ]]; do
            line=${line#*"${BASH_REMATCH[0]}"}
            first=${BASH_REMATCH[1]}
            rest=${BASH_REMATCH[2]//[\\ ]/}
            named+=("$first")
            while [ -n "$rest" ]; do
                second=${rest%%|*}
                named+=("$first $second")
                rest=${rest#"$second"}
                rest=${rest#|}
            done
        done
    done <"$1"
}

check_readme_and_help_name_the_same_commands() {
    [ -e "$ROOT/README.md" ] || skip "no README.md yet"
    local commands=() groups=() named=() command name first readme exists
    collect_commands
    collect_named "$ROOT/README.md"
    for command in "${commands[@]}"; do
        contains "$command" "${named[@]}" || fail "README.md lacks a command of --help: $command"
        if [[ $command == *" "* ]]; then groups+=("${command% *}"); fi
    done
    readme=$(<"$ROOT/README.md")
    for name in "${named[@]}"; do
        first=${name%% *}
        exists=no
        if contains "$name" "${commands[@]}"; then
            exists=yes
        elif contains "$first" "${commands[@]}" && ! contains "$first" "${groups[@]}"; then
            exists=yes    # the second word is an argument
        fi
        # "moesim replays traces" is a sentence: only calls count, set in code or of a group
        if [[ $name == *" "* ]] && contains "$first" "${groups[@]}" || [[ $readme =~ "\`moesim $first"([^A-Za-z0-9_]|$) ]]; then
            [ "$exists" = yes ] || fail "README.md names a command that does not exist: $name"
        fi
    done
}

check_threads_and_window_change_nothing() {
    # shellcheck disable=SC2054  # commas belong to the words
    local words=(run "$SAMPLE" --format json --policy random,lru,oled,surv,belady --cache 10:250:40 --baseline lru)
    succeed one "${words[@]}" --threads 1
    succeed four "${words[@]}" --threads 4
    same one.out four.out "one thread, four threads"
    succeed narrow "${words[@]}" --window 2MiB
    same one.out narrow.out "the default window, a window of 2 MiB"
}

check_csv_file() {
    local words=(run "$SAMPLE" --policy lru --cache 40)
    mkdir files
    succeed both "${words[@]}" --csv files/r.csv
    succeed csv "${words[@]}" --format csv
    same files/r.csv csv.out "--csv FILE, --format csv"
    succeed table "${words[@]}"
    same both.out table.out "the table with --csv FILE and without"
    [ "$(ls -A files)" = r.csv ] || fail "left behind: $(ls -A files)"
}

check_table_fits_80_columns() {
    local constant
    succeed many run "$SAMPLE" --policy random,lru,oled,surv,belady,belady-forced,ideal-pooled,full --cache 1,100,256
    fits_80_columns many.out
    succeed options run "$SAMPLE" --policy lru --policy oled:confidence=hindsight,adapt=on --cache 40,60 --baseline lru --gap
    fits_80_columns options.out
    succeed global run "$SAMPLE" --policy lru,belady --scope global --cache 40MiB,1GiB --baseline lru
    fits_80_columns global.out
    succeed timed run "$SAMPLE" --policy lru,oled-full,full --cache 1,40 --time model
    fits_80_columns timed.out
    for constant in link.alpha=3600s other.gpu=3600s link.alpha=0s; do
        succeed extreme run "$SAMPLE" --policy lru,oled-full,ideal,random,full --cache 1,40 --time model --set "$constant"
        fits_80_columns extreme.out
    done
}

check_other_tables_fit_80_columns() {
    local words
    for words in "trace stats $SAMPLE" "trace info $SAMPLE" "trace head $SAMPLE" "profile models" "profile show" policies \
        "profile show h200-host" "policies oled"; do
        # shellcheck disable=SC2086  # words are several
        succeed table $words
        fits_80_columns table.out
    done
}

check_decisions_appear_complete_or_not_at_all() {
    local words=(run "$SAMPLE" --policy lru --cache 40 --decisions files/d.h5)
    mkdir files
    succeed first "${words[@]}" --format json
    [ "$(ls -A files)" = d.h5 ] || fail "left behind: $(ls -A files)"
    cp files/d.h5 before.h5
    succeed second "${words[@]}" --format json
    same first.out second.out "two runs with --decisions"
    same before.h5 files/d.h5 "the decision log is not byte-stable"
    moesim failing "${words[@]}" --window 100B
    [ "$status" -ne 0 ] || fail "a window of 100 bytes was accepted"
    same before.h5 files/d.h5 "an older file was touched by a run that failed"
    [ "$(ls -A files)" = d.h5 ] || fail "left behind by a run that failed: $(ls -A files)"
}

check_interruption_leaves_nothing() {
    local signal
    for signal in TERM HUP; do    # INT is ignored by background jobs of a script
        interrupt "$signal"
    done
}

# interrupt SIGNAL: a run that gets it ends soon, says so, and leaves no file.
interrupt() {
    local child waited=0 status=0
    mkdir -p files
    # under nohup HUP would be ignored
    env --default-signal="$1" "$MOESIM" run "$SAMPLE" --policy oled,surv,lfru,belady,next-pass,random \
        --cache 1:256 --threads 1 --csv files/r.csv \
        </dev/null >run.out 2>run.err &
    child=$!
    sleep 0.4
    kill -"$1" "$child" 2>/dev/null || skip "the run ended before it could be interrupted"
    while kill -0 "$child" 2>/dev/null; do
        waited=$((waited + 1))
        if [ "$waited" -gt 2400 ]; then
            kill -KILL "$child"
            fail "still running two minutes after the interruption"
        fi
        sleep 0.05
    done
    wait "$child" || status=$?
    [ "$status" -eq 1 ] || fail "exit status $status, expected 1: $(<run.err)"
    [ ! -s run.out ] || fail "an interrupted run printed results"
    [[ $(<run.err) == *interrupted* ]] || fail "no word of the interruption: $(<run.err)"
    [ -z "$(ls -A files)" ] || fail "left behind: $(ls -A files)"
}

# A policy from a shared object is an input as well.
check_policies_are_not_written_over() {
    command -v cc >/dev/null || skip "there is no cc to build a policy with"
    local words=(--policy ./mine.so:row-bonus=1 --cache 40) output
    succeed new policy new mine
    cc -shared -fPIC -I"$ROOT/include" mine.c -o mine.so || fail "the new policy does not build"
    cp mine.so before.so
    for output in --csv --decisions; do
        moesim run run "$SAMPLE" "${words[@]}" "$output" mine.so
        [ "$status" -eq 2 ] || fail "run $output: exit status $status: $(<run.err)"
    done
    moesim sweep sweep "$SAMPLE" "${words[@]}" --output mine.so
    [ "$status" -eq 2 ] || fail "sweep: exit status $status: $(<sweep.err)"
    same before.so mine.so "the policy was touched"
}

check_closed_pipe_is_quiet() {
    local got
    got=$({ "$MOESIM" run "$SAMPLE" --policy lru --cache 1:256 --format csv | head -1 | cut -c1-6; } 2>pipe.err)
    [ "$got" = policy ] || fail "printed: $got"
    [ ! -s pipe.err ] || fail "wrote to standard error: $(<pipe.err)"
}

check_surv_warns_of_other_models() {
    local captures=${MOESIM_KNOWN_ANSWERS:-/nonexistent}/route-trace warning
    [ -d "$captures" ] || skip "MOESIM_KNOWN_ANSWERS names no folder with captures"
    warning="warning: surv's table was calibrated on example/blockdiff-moe-20x256k8; this trace is of "
    succeed import trace import --from route-trace "$captures/qwen.route.csv" qwen.h5
    succeed surv run qwen.h5 --policy surv --cache 8
    [[ $(<surv.err) == *"$warning"* ]] || fail "no warning: $(<surv.err)"
    succeed lru run qwen.h5 --policy lru --cache 8
    [[ $(<lru.err) != *warning* ]] || fail "a warning for lru: $(<lru.err)"
}

total=0
skipped=0
failed=0
for test in $(compgen -A function check_); do
    mkdir "$work/$test"
    (
        set -e
        cd -- "$work/$test"
        "$test"
    )
    case $? in
    0) echo "ok $test" ;;
    "$SKIPPED") skipped=$((skipped + 1)) ;;
    *)
        echo "FAILED $test"
        failed=$((failed + 1))
        ;;
    esac
    total=$((total + 1))
done
echo "command line checked: $total tests, $skipped skipped, $failed failed"
[ "$total" -gt 0 ] && [ "$failed" -eq 0 ]
