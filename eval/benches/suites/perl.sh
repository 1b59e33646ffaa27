# perl: the core's own tests in t, and those of its extensions. TESTS narrows it.

build() {
    [ -f config.sh ] || sh ./Configure -des -Doptimize=-O1 || return
    make test_prep
}

check() (cd t && TEST_JOBS=2 PERL_SKIP_TTY_TEST=1 HARNESS_NOTTY=1 "$@" ./perl harness ${TESTS:-})

# "op/fork.t ............ ok", and for one that failed the summary's "op/fork.t (Wstat: 256 …".
results() {
    sed -n 's/^\([^ ]*\) \.\.*[. ]*\(ok\|skipped\)\(:.*\)*$/\2 \1/p
            s/^\([^ ]*\.t\)  *(Wstat: .*/failed \1/p'
}

alone() (
    test=$1
    shift
    cd t && "$@" ./perl harness "$test"
)
