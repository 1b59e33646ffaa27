#!/bin/sh
# Apart from time, a program cannot tell: runs a program's own test suite bare and under
# `discnice run --disk LIMIT`, and compares what each test gave.
#
#   eval/benches/suites.sh SUITE [[MECHANISM:]LIMIT…]
#
# SUITE is the name of a file in eval/benches/suites: grep, tar, coreutils, libuv1, libevent, apr,
# glib2.0, perl or python3.11. LIMIT is unlimited and 50M unless told otherwise; with a mechanism
# before it (`freeze:2G`, `seccomp:2G`) the command is held by that one. A test whose result differs
# is run again alone, bare and under the limit, RETRIES times each (3 unless told otherwise), where
# the suite can run one test; it counts as differing if no result is common to both.
#
# The source is the distribution's: apt's own list of sources is read, never changed; VERSION chooses
# one that is not the newest. Needs apt-get, dpkg-source, a C compiler and make, for libuv1 and
# libevent also cmake, for glib2.0 meson, ninja and the headers of pcre2; an ordinary user, as tests
# behave differently for root. DISCNICE names the program, WORK a folder that keeps source and build;
# TESTS narrows coreutils' suite ("tests/dd tests/cp"), perl's ("op/fork.t io/*.t") and python's
# ("test_os test_io"). LOCPATH and the like reach the tests.
# Prints the number of tests by result and each test whose result differs. Exit status: 0 if none
# does, 1 if any does, 125 if the suite could not be run.
set -eu

fail() { echo "suites.sh: $*" >&2; exit 125; }

here=$(realpath "$(dirname "$0")")
suites=$(cd "$here/suites" && for file in *.sh; do printf '%s ' "${file%.sh}"; done)
[ $# -ge 1 ] || fail "no suite named; there are $suites"
suite=$1
shift
case $suite in
    */* | "") fail "no suite \"$suite\"; there are $suites" ;;
esac
[ -f "$here/suites/$suite.sh" ] || fail "no suite \"$suite\"; there are $suites"
[ $# -gt 0 ] || set -- unlimited 50M
[ "$(id -u)" != 0 ] || fail "must not run as root, for whom tests behave differently"
discnice=$(realpath "${DISCNICE:-$here/../../target/release/discnice}")
[ -x "$discnice" ] || fail "no program at $discnice; run make build or set DISCNICE"
# Without it every mechanism is another one.
"$discnice" doctor | grep -q '^ok *library' || fail "$discnice has no library; run make build"
work=${WORK:-$(mktemp -d "${TMPDIR:-/tmp}/discnice-suites.XXXXXX")}
mkdir -p "$work"
work=$(realpath "$work")
source=$work/$suite

# apt with folders of our own, and with the source packages of all that it knows.
apt() {
    apt-get -qq -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$work/apt/sources" \
        -o Dir::State="$work/apt/state" -o Dir::Cache="$work/apt/cache" "$@"
}

fetch() {
    mkdir -p "$work/apt/sources" "$work/apt/state/lists/partial" "$work/apt/cache/archives/partial"
    for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [ ! -f "$list" ] || sed -n 's/^deb /deb-src /p' "$list" >>"$work/apt/sources/all.list"
    done
    for list in /etc/apt/sources.list.d/*.sources; do
        [ ! -f "$list" ] ||
            sed 's/^Types:.*/Types: deb-src/' "$list" >"$work/apt/sources/${list##*/}"
    done
    apt update
    (cd "$work" && apt source --download-only "$suite${VERSION:+=$VERSION}")
    # As released: patches would ask for the tools that make its configure script.
    dpkg-source --skip-patches --no-check -x "$work/${suite}_"*.dsc "$source"
}

# What a suite's file defines, each called in the folder of its source:
#   build            makes the programs and what the tests need
#   check [COMMAND…] runs the whole suite, by the command where one is given
#   results          turns what the suite printed into lines "RESULT NAME"
#   alone NAME [COMMAND…]  runs one test of that name alone and prints what check prints;
#                    where a suite cannot, it is not defined
. "$here/suites/$suite.sh"

# Counts the tests of a run by result.
counts() {
    sed 's/^not ok .*/not ok/; s/^ok .*(skipped)$/skipped/; s/ .*//; s/^not$/not ok/' "$1" |
        sort | uniq -c | awk '{ printf " %s", $0 } END { print "" }' | tr -s ' '
}

# Runs the suite under a name of the run, and says how it went. The suite's exit status is that of
# its worst test: what counts here is that it is the same.
run() {
    name=$1
    shift
    begin=$(date +%s)
    (cd "$source" && check "$@") >"$work/$suite.$name.log" 2>&1 </dev/null || :
    results <"$work/$suite.$name.log" | sort >"$work/$suite.$name"
    [ -s "$work/$suite.$name" ] || fail "no test of $suite ran; see $work/$suite.$name.log"
    printf '%-12s %5d tests in %4d s:' "$name" "$(wc -l <"$work/$suite.$name")" \
        $(($(date +%s) - begin))
    counts "$work/$suite.$name"
}

# The results that a test gives alone, each once, in one line.
repeated() {
    test=$1
    shift
    for _ in $(seq "${RETRIES:-3}"); do
        # A test may end in "(skipped)", which belongs to its result.
        (cd "$source" && alone "$test" "$@") 2>&1 </dev/null | results |
            awk -v test="$test" '{ name = $0; sub(/^(not ok|[^ ]*) /, "", name)
                                   sub(/ \(skipped\)$/, "", name) } name == test' |
            grep . || echo "none"
    done | sort -u | tr '\n' ';'
}

# Tells whether two lists of results have one in common, which "none" is not.
in_common() {
    echo "$1" | tr ';' '\n' | grep -vx none | grep . | (
        while read -r result; do
            case ";$2" in *";$result;"*) exit 0 ;; esac
        done
        exit 1
    )
}

# Reads the tests that differ, and repeats each alone: says of each whether it still differs.
# Fails if any does.
still_differs() {
    worst=0
    while read -r test; do
        if ! command -v alone >/dev/null; then
            echo "  differs: $test"
            worst=1
            continue
        fi
        bare=$(repeated "$test")
        limited=$(repeated "$test" "$@")
        if in_common "$bare" "$limited"; then
            echo "  same alone: $test (bare: $bare limited: $limited)"
        else
            echo "  differs alone: $test (bare: $bare limited: $limited)"
            worst=1
        fi
    done
    return $worst
}

# The names of the tests that do not give the same in both files.
differing() {
    diff "$1" "$2" | sed -n 's/^[<>] //p' |
        sed 's/^not ok //; t name; s/^[^ ]* //; :name; s/ (skipped)$//' | sort -u
}

[ -d "$source" ] || fetch >"$work/$suite.fetch.log" 2>&1 ||
    fail "could not get the source of $suite; see $work/$suite.fetch.log"
(cd "$source" && build) >"$work/$suite.build.log" 2>&1 ||
    fail "could not build $suite; see $work/$suite.build.log"
echo "$suite in $work"
run bare
differs=0
for limit in "$@"; do
    case $limit in
        *:*) mechanism=${limit%%:*} ;;
        *) mechanism=auto ;;
    esac
    set -- "$discnice" run --disk "${limit#*:}" --mechanism "$mechanism" --
    run "$limit" "$@"
    diff "$work/$suite.bare" "$work/$suite.$limit" || :
    differing "$work/$suite.bare" "$work/$suite.$limit" >"$work/$suite.differing"
    still_differs "$@" <"$work/$suite.differing" || differs=1
done
exit $differs
