#!/bin/sh
# Installs header, shared and static library and pkg-config file: install.sh PREFIX [CARGO-PROFILE]
#
# The shared library is linked here from the static one, because rustc's own version script for a
# cdylib leaves no room for versioned symbols. With DESTDIR, everything is put there, to be moved to PREFIX later.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
prefix=${1:?usage: install.sh PREFIX [PROFILE]}
root=${DESTDIR:-}$prefix
profile=${2:-release}
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' "$here/../../Cargo.toml")
major=${version%%.*}

cd "$here"
${CARGO:-cargo} build --quiet --locked --package discnice-capi --profile "$profile"
case $profile in dev) out=debug ;; *) out=$profile ;; esac
built=${CARGO_TARGET_DIR:-$here/../../target}/$out

install -d "$root/include" "$root/lib/pkgconfig"
install -m 644 include/discnice.h "$root/include/"
install -m 644 "$built/libdiscniceapi.a" "$root/lib/libdiscnice_testpoint.a"
${CC:-cc} -shared -o "$root/lib/libdiscnice_testpoint.so.$version" \
    -Wl,-soname,"libdiscnice_testpoint.so.$major" -Wl,--version-script="$here/discnice.map" \
    -Wl,--gc-sections -Wl,-z,defs \
    -Wl,--whole-archive "$built/libdiscniceapi.a" -Wl,--no-whole-archive \
    -lgcc_s -lpthread -ldl -lm -lc
ln -sf "libdiscnice_testpoint.so.$version" "$root/lib/libdiscnice_testpoint.so.$major"
ln -sf "libdiscnice_testpoint.so.$major" "$root/lib/libdiscnice_testpoint.so"
sed -e "s|@PREFIX@|$prefix|" -e "s|@VERSION@|$version|" discnice.pc.in > "$root/lib/pkgconfig/discnice.pc"
