#!/bin/sh
# Apart from time, a program cannot tell: runs a program's own test suite bare and under
# `discnice run --disk LIMIT`, and compares what each test gave.
#
#   benches/suites.sh SUITE [LIMIT…]      SUITE: grep, tar, coreutils or libuv1
#                                         LIMIT: unlimited and 50M unless told otherwise
#
# The source is the distribution's: apt's own list of sources is read, never changed. Needs apt-get,
# dpkg-source, a C compiler and make, for libuv1 also cmake; an ordinary user, as tests behave
# differently for root. DISCNICE names the program, WORK a folder that keeps source and build;
# TESTS narrows coreutils' suite ("tests/dd tests/cp"). LOCPATH and the like reach the tests.
# Prints the number of tests by result and each test whose result differs. Exit status: 0 if none
# does, 1 if any does, 125 if the suite could not be run.
set -eu

fail() { echo "suites.sh: $*" >&2; exit 125; }

[ $# -ge 1 ] || fail "no suite named; give grep, tar, coreutils or libuv1"
suite=$1
shift
case $suite in
    grep | tar | coreutils | libuv1) ;;
    *) fail "no suite \"$suite\"; there are grep, tar, coreutils and libuv1" ;;
esac
[ $# -gt 0 ] || set -- unlimited 50M
[ "$(id -u)" != 0 ] || fail "must not run as root, for whom tests behave differently"
discnice=$(realpath "${DISCNICE:-$(dirname "$0")/../target/release/discnice}")
[ -x "$discnice" ] || fail "no program at $discnice; run make build or set DISCNICE"
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
    (cd "$work" && apt source --download-only "$suite")
    # As released: patches would ask for the tools that make its configure script.
    dpkg-source --skip-patches --no-check -x "$work/${suite}_"*.dsc "$source"
}

build() (
    cd "$source"
    if [ "$suite" = libuv1 ]; then
        cmake -S . -B build -DCMAKE_BUILD_TYPE=Release && make -C build uv_run_tests
        return
    fi
    ./configure --quiet --disable-nls --disable-dependency-tracking CFLAGS="-O1 -pipe" || return
    case $suite in
        grep) make SUBDIRS="lib src" ;;
        tar) for part in gnu lib rmt src; do make -C $part || return; done && make -C tests genfile ;;
        coreutils) make SUBDIRS=. ;;
    esac
)

# Runs the suite, by the command "$@" where one is given.
check() (
    cd "$source"
    case $suite in
        grep) "$@" make -C tests check VERBOSE= ;;
        tar) "$@" make -C tests check-local ;;
        libuv1) "$@" build/uv_run_tests ;;
        coreutils) "$@" make check-TESTS VERBOSE= SUBDIRS=. ${TESTS:+TESTS="$(chosen)"} ;;
    esac
)

# The tests of coreutils below the folders that TESTS names.
chosen() {
    make -s -f - <<'EOF' | tr ' ' '\n' | grep -E "^($(echo "$TESTS" | sed 's/  */|/g'))/" | tr '\n' ' '
include Makefile
.PHONY: list-of-tests
.DEFAULT_GOAL := list-of-tests
list-of-tests: ; @echo $(all_tests)
EOF
}

# One line for each test, "RESULT NAME", from what the suite printed.
results() {
    case $suite in
        tar) sed -n 's/^ *[0-9]*: \(.*[^ ]\)  *\(ok\|skipped\|FAILED\|expected failure\)\( .*\)*$/\2 \1/p' ;;
        libuv1) sed -n 's/ # SKIP.*/ (skipped)/; s/^\(ok\|not ok\) [0-9]* - /\1 /p' ;;
        *) sed -n 's/^\(PASS\|FAIL\|SKIP\|XFAIL\|XPASS\|ERROR\): /\1 /p' ;;
    esac | sort
}

# Runs the suite under a name of the run, and says how it went. The suite's exit status is that of
# its worst test: what counts here is that it is the same.
run() {
    name=$1
    shift
    begin=$(date +%s)
    check "$@" >"$work/$suite.$name.log" 2>&1 || :
    results <"$work/$suite.$name.log" >"$work/$suite.$name"
    [ -s "$work/$suite.$name" ] || fail "no test of $suite ran; see $work/$suite.$name.log"
    printf '%-10s %5d tests in %4d s:' "$name" "$(wc -l <"$work/$suite.$name")" \
        $(($(date +%s) - begin))
    sed 's/^not ok .*/not ok/; s/^ok .*(skipped)$/skipped/; s/ .*//; s/^not$/not ok/' \
        "$work/$suite.$name" | sort | uniq -c | awk '{ printf " %s", $0 } END { print "" }' | tr -s ' '
}

[ -d "$source" ] || fetch >"$work/$suite.fetch.log" 2>&1 ||
    fail "could not get the source of $suite; see $work/$suite.fetch.log"
build >"$work/$suite.build.log" 2>&1 ||
    fail "could not build $suite; see $work/$suite.build.log"
echo "$suite in $work"
run bare
differs=0
for limit in "$@"; do
    run "$limit" "$discnice" run --disk "$limit" --
    diff "$work/$suite.bare" "$work/$suite.$limit" || differs=1
done
exit $differs
