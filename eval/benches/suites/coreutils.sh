# GNU coreutils: an automake suite of shell and perl scripts; TESTS narrows it to folders.

build() {
    ./configure --quiet --disable-nls --disable-dependency-tracking CFLAGS="-O1 -pipe" &&
        make SUBDIRS=.
}

check() { "$@" make check-TESTS VERBOSE= SUBDIRS=. ${TESTS:+TESTS="$(chosen)"}; }

# The tests below the folders that TESTS names.
chosen() {
    make -s -f - <<'END' | tr ' ' '\n' | grep -E "^($(echo "$TESTS" | sed 's/  */|/g'))/" | tr '\n' ' '
include Makefile
.PHONY: list-of-tests
.DEFAULT_GOAL := list-of-tests
list-of-tests: ; @echo $(all_tests)
END
}

results() { sed -n 's/^\(PASS\|FAIL\|SKIP\|XFAIL\|XPASS\|ERROR\): /\1 /p'; }

alone() {
    test=$1
    shift
    "$@" make check-TESTS VERBOSE= SUBDIRS=. TESTS="$test"
}
