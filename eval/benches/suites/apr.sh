# Apache Portable Runtime: one program, whose groups of tests each give one result.

build() {
    [ -f Makefile ] || ./configure --quiet CFLAGS="-O1 -pipe" || return
    make && make -C test all
}

check() (cd test && "$@" ./testall -q)

# A group that does not fail says so at once; the numbers of its failing tests follow at the end.
results() {
    sed -n 's/^\(test[a-z0-9]*\)  *: .*SUCCESS$/SUCCESS \1/p
            s/^\(test[a-z0-9]*\)  *: .*FAILED \([0-9]*\) of \([0-9]*\)$/FAILED-\2-of-\3 \1/p'
}

alone() (
    test=$1
    shift
    cd test && "$@" ./testall -q "$test"
)
