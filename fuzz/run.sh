#!/bin/sh
# Fuzzes each target for so many seconds (60), instrumented as libFuzzer wants it by any compiler.
set -eu
cd "$(dirname "$0")"
seconds=${1:-60}
pass=-Cllvm-args=-sanitizer-coverage
RUSTFLAGS="-Cpasses=sancov-module $pass-level=4 $pass-inline-8bit-counters $pass-pc-table -Ccodegen-units=1"
export RUSTFLAGS
# Naming the target keeps build scripts free of the instrumentation.
host=$(rustc -vV | sed -n 's/^host: //p')
cargo build --release --quiet --target "$host" --target-dir ../target/fuzz
for target in adoption config elf entry environment filter line quantities refresh_marker scribbled_class symbols token \
    update_regions; do
    mkdir -p "../target/fuzz/corpus/$target"
    echo "== $target, $seconds s"
    "../target/fuzz/$host/release/$target" -max_total_time="$seconds" -verbosity=0 -print_final_stats=1 \
        -artifact_prefix="../target/fuzz/$target-" "../target/fuzz/corpus/$target"
done
