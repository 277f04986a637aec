# SPDX-License-Identifier: Apache-2.0
# Sourced by tests that run $program and look at what it leaves: a folder of their own, and what they say of a failure.
LC_ALL=C
work=$(mktemp -d) || exit 2
trap 'rm -rf -- "$work"' EXIT
cd "$work" || exit 2
bad=0

complain() {
    echo "$*"
    bad=1
}

# STATUS WORDS…: runs the program, leaves out and err. What fails says so in one error.
expect() {
    local wanted=$1 status=0 name=${program##*/}
    shift
    "$program" "$@" </dev/null >out 2>err || status=$?
    [ "$status" -eq "$wanted" ] || complain "$name $*: exit status $status, not $wanted: $(tail -n 3 err)"
    [ "$(grep -c '^moesim: error' err)" -eq "$((wanted != 0))" ] || complain "$name $*: not one error: $(cat err)"
}

# TEXT FILE: FILE holds TEXT.
holds() {
    grep -qF -- "$1" "$2" || complain "missing in $2: $1"
}
