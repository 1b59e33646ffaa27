# libevent: one program, which runs each test in a process of its own.

build() {
    cmake -S . -B build -DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS=-O1 \
        -DEVENT__DISABLE_BENCHMARK=ON -DEVENT__DISABLE_SAMPLES=ON &&
        make -C build regress
}

check() { "$@" build/bin/regress; }

# "group/name: [forking] OK"; what a test prints may come between its name and its result.
results() {
    awk '
        function say(result) { if (test != "") print result, test; test = "" }
        /^ *\[[^ ]* FAILED\]/ { say("FAILED"); next }
        match($0, /^[a-z_0-9]+\/[^ :]+: /) { test = substr($0, 1, RLENGTH - 2) }
        /OK$/ { say("OK") }
        /SKIPPED$/ { say("SKIPPED") }
        /DISABLED$/ { say("DISABLED") }'
}

alone() {
    test=$1
    shift
    "$@" build/bin/regress "$test"
}
