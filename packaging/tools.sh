#!/bin/sh
# Gets what builds packages, into DIR: tools.sh DIR. Tools that are there already are used.
set -eu
dir=${1:?usage: tools.sh DIR}
mkdir -p "$dir"
need() { command -v "$1" >/dev/null 2>&1 || [ -x "$dir/bin/$1" ]; }
need cargo-deb || cargo install --quiet --locked --root "$dir" cargo-deb
need cargo-generate-rpm || cargo install --quiet --locked --root "$dir" cargo-generate-rpm
rustup target list --installed | grep -q '^x86_64-unknown-linux-musl$' ||
    rustup target add x86_64-unknown-linux-musl
