#!/bin/sh
# Builds the program and the library for aarch64, and tries them under qemu-user: cross.sh. Needs clang, lld,
# qemu-user-static, libc6-arm64-cross.
set -eu
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}"
tools=${DISCNICE_TOOLS:-$CARGO_TARGET_DIR/tools}
packaging/tools.sh "$tools"
PATH=$tools/python/bin:$PATH
export PATH
program=aarch64-unknown-linux-musl
library=aarch64-unknown-linux-gnu
for target in $program $library; do
    rustup target list --installed | grep -q "^$target\$" || rustup target add $target
done
# What is only tried need not be optimized as a whole.
CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
    cargo zigbuild --release --locked -p discnice-cli --target $program
# It starts before all other libraries (-z initfirst), which zig's linker does not know.
CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=clang \
    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS="-Clink-arg=--target=aarch64-linux-gnu -Clink-arg=-fuse-ld=lld -Clink-arg=-nostartfiles" \
    cargo build --release --locked -p discnice-preload --target $library

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$CARGO_TARGET_DIR/$program/release/discnice" "$CARGO_TARGET_DIR/$library/release/libdiscnice.so" "$work"
export XDG_RUNTIME_DIR="$work/run" HOME="$work"
mkdir -m 700 "$work/run"
# Fails unless what qemu runs says TEXT and succeeds: expect TEXT PROGRAM...
expect() {
    wanted=$1
    shift
    said=$(qemu-aarch64-static "$@" 2>&1) || { echo "$*: exit status $?: $said" >&2; exit 1; }
    case $said in
        *"$wanted"*) echo "passed: $(echo "$*" | sed "s|$work/||g")" ;;
        *) echo "$*: no $wanted in: $said" >&2; exit 1 ;;
    esac
}
expect discnice "$work/discnice" --version
expect "Run a command" "$work/discnice" run -h
expect "" "$work/discnice" class set nightly --disk 5M
expect nightly "$work/discnice" class list
expect '"limit_total": 5242880' "$work/discnice" class show nightly --json
# The library in a program of its kind, which it must leave as it is.
printf '#include <stdio.h>\nint main(void) { return puts("as it is") < 0; }\n' >"$work/program.c"
python-zig cc -target aarch64-linux-gnu.2.17 -o "$work/program" "$work/program.c"
cross=/usr/aarch64-linux-gnu
expect "as it is" -L $cross -E LD_PRELOAD="$work/libdiscnice.so" "$work/program"
