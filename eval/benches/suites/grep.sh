# GNU grep: an automake suite of shell scripts.

build() {
    ./configure --quiet --disable-nls --disable-dependency-tracking CFLAGS="-O1 -pipe" &&
        make SUBDIRS="lib src"
}

check() { "$@" make -C tests check VERBOSE=; }

results() { sed -n 's/^\(PASS\|FAIL\|SKIP\|XFAIL\|XPASS\|ERROR\): /\1 /p'; }

alone() {
    test=$1
    shift
    "$@" make -C tests check VERBOSE= TESTS="$test"
}
