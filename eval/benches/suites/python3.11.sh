# CPython: python's own test package, without what asks for the network, a display or much space.
# TESTS narrows it to modules.

build() {
    [ -f Makefile ] || ./configure --quiet OPT="-O1 -pipe" || return
    [ -f build/.built ] || { make -s && touch build/.built; }
}

# One line for each test, as unittest prints them.
check() { "$@" ./python -m test -j2 -v --timeout 600 ${TESTS:-}; }

# "test_name (test.test_os.Class.test_name) ... ok". What a test prints may come between the two, so
# that the result is lost or taken for the next test's: the summary's "ERROR: test_name (…)" overrides.
results() {
    awk '
        function named(line) { sub(/^[^(]*\(/, "", line); sub(/\).*/, "", line); return line }
        function say(result) { if (test != "" && of[test] != "FAILED") of[test] = result; test = "" }
        /^(ERROR|FAIL): [^ ]+ \(/ { of[named($0)] = "FAILED"; next }
        /^test[^ ]* \([^ ]*\)/ { say("none"); test = named($0) }
        /(^|\.\.\. )ok$/ { say("ok") }
        /\.\.\. skipped / || /^skipped / { say("skipped") }
        /(^|\.\.\. )(FAIL|ERROR)$/ { say("FAILED") }
        /(^|\.\.\. )expected failure$/ { say("expected-failure") }
        END { say("none"); for (test in of) print of[test], test }'
}

# The test of one name, which ends in Class.method.
alone() {
    test=$1
    shift
    module=$(echo "$test" | sed 's/^test\.//; s/\..*//')
    "$@" ./python -m test -v --timeout 600 -m "$test" "$module"
}
