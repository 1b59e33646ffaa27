#!/bin/sh
# Installs header, shared and static library and pkg-config file: install.sh PREFIX [CARGO-PROFILE]
#
# The shared library is linked here from the static one, because rustc's own version script for a
# cdylib leaves no room for versioned symbols.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
prefix=${1:?usage: install.sh PREFIX [PROFILE]}
profile=${2:-release}
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' "$here/../../Cargo.toml")
major=${version%%.*}

cd "$here"
cargo build --quiet --jobs 1 --package discnice-capi --profile "$profile"
case $profile in dev) out=debug ;; *) out=$profile ;; esac
built=${CARGO_TARGET_DIR:-$here/../../target}/$out

install -d "$prefix/include" "$prefix/lib/pkgconfig"
install -m 644 include/discnice.h "$prefix/include/"
install -m 644 "$built/libdiscniceapi.a" "$prefix/lib/libdiscnice_testpoint.a"
${CC:-cc} -shared -o "$prefix/lib/libdiscnice_testpoint.so.$version" \
    -Wl,-soname,"libdiscnice_testpoint.so.$major" -Wl,--version-script="$here/discnice.map" \
    -Wl,--gc-sections -Wl,-z,defs \
    -Wl,--whole-archive "$built/libdiscniceapi.a" -Wl,--no-whole-archive \
    -lgcc_s -lpthread -ldl -lm -lc
ln -sf "libdiscnice_testpoint.so.$version" "$prefix/lib/libdiscnice_testpoint.so.$major"
ln -sf "libdiscnice_testpoint.so.$major" "$prefix/lib/libdiscnice_testpoint.so"
sed -e "s|@PREFIX@|$prefix|" -e "s|@VERSION@|$version|" discnice.pc.in > "$prefix/lib/pkgconfig/discnice.pc"
