# libuv: one program, which runs each test as a process of its own.

build() { cmake -S . -B build -DCMAKE_BUILD_TYPE=Release && make -C build uv_run_tests; }

check() { "$@" build/uv_run_tests; }

results() { sed -n 's/ # SKIP.*/ (skipped)/; s/^\(ok\|not ok\) [0-9]* - /\1 /p'; }

alone() {
    test=$1
    shift
    "$@" build/uv_run_tests "$test"
}
