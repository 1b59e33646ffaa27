# GNU tar: an Autotest suite.

build() {
    ./configure --quiet --disable-nls --disable-dependency-tracking CFLAGS="-O1 -pipe" || return
    for part in gnu lib rmt src; do make -C $part || return; done
    make -C tests genfile
}

check() { "$@" make -C tests check-local; }

results() {
    sed -n 's/^ *[0-9]*: \(.*[^ ]\)  *\(ok\|skipped\|FAILED\|expected failure\)\( .*\)*$/\2 \1/p'
}
