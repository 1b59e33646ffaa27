#!/bin/sh
# Gets what builds packages, into DIR: tools.sh DIR. Tools that are there already are used.
set -eu
dir=${1:?usage: tools.sh DIR}
mkdir -p "$dir"
need() { command -v "$1" >/dev/null 2>&1 || [ -x "$dir/bin/$1" ]; }
# Not optimized: they run for seconds, and take three times as long to build otherwise.
export CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=64
need cargo-deb || cargo install --quiet --locked --root "$dir" cargo-deb
need cargo-generate-rpm || cargo install --quiet --locked --root "$dir" cargo-generate-rpm
for tool in maturin auditwheel ziglang cargo-zigbuild; do
    [ -d "$dir/python" ] || python3 -m venv "$dir/python"
    "$dir/python/bin/pip" show --quiet "$tool" 2>/dev/null || "$dir/python/bin/pip" install --quiet "$tool"
done
