#!/bin/sh
# Builds the packages for aarch64 into dist/ and tries what is in them under qemu-user: cross.sh.
# Needs clang, lld, binutils-aarch64-linux-gnu, libc6-arm64-cross, qemu-user-static, rpm, cpio, umoci; Linux 6.7 or newer.
set -eu
cd "$(dirname "$0")/.."
if [ "${1:-}" != --in-namespace ]; then
    ARCHITECTURE=aarch64 packaging/build.sh
    # The kernel starts programs for aarch64 by qemu in this user namespace alone.
    exec unshare --user --map-root-user --mount "$0" --in-namespace
fi
mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
# ELF, 64 bits, little-endian, executable or shared, EM_AARCH64; binfmt_misc(5) unescapes it.
magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
printf '%s' ":aarch64:M::$magic:$mask:$(command -v qemu-aarch64-static):F" >/proc/sys/fs/binfmt_misc/register

export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}"
PATH=${DISCNICE_TOOLS:-$CARGO_TARGET_DIR/tools}/python/bin:$PATH
export PATH
dist=$PWD/dist
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
work=$(mktemp -d "${TMPDIR:-/var/tmp}/discnice-cross.XXXXXX")
trap 'rm -rf "$work"' EXIT
export XDG_RUNTIME_DIR="$work/run" HOME="$work"
mkdir -m 700 "$work/run"
mkdir "$work/tools"
libraries=/usr/aarch64-linux-gnu/lib
python-zig cc -target aarch64-linux-gnu.2.17 -Wl,--dynamic-linker="$libraries/ld-linux-aarch64.so.1" -Wl,-rpath,"$libraries" \
    -o "$work/tools/dd" packaging/dd.c
PATH=$work/tools:$PATH

unpack_tarball() { tar -xJf "$dist/discnice-$version-aarch64.tar.xz" -C "$1" --strip-components 2 --wildcards '*/files'; }
unpack_rpm() { (cd "$1" && rpm2cpio "$dist/discnice-$version"-*.aarch64.rpm | cpio --quiet -idm && mv usr/* .); }
unpack_wheel() {
    python3 -m zipfile -e "$dist/discnice-$version"-*_aarch64.whl "$1"
    mv "$1/discnice-$version.data/scripts" "$1/bin"
    mv "$1/discnice-$version.data/data/lib" "$1/lib"
    chmod 755 "$1/bin/discnice"
}
unpack_oci() {
    mkdir "$1/layout"
    tar -xf "$dist/discnice-$version-aarch64.oci.tar" -C "$1/layout"
    umoci raw unpack --image "$1/layout:$version" "$1/root" >/dev/null && mv "$1"/root/usr/* "$1"
}

# Holds a job by what is in a package, and prints the rate. The library does that alone: policyd refuses to start beside a
# thread, and qemu has one of its own.
for package in tarball rpm wheel oci; do
    mkdir "$work/$package"
    unpack_$package "$work/$package"
    program=$work/$package/bin/discnice
    "$program" class set nightly --disk 5M >/dev/null
    "$program" class show nightly --json | grep -q '"limit_total": 5242880'
    rate=$(packaging/use.sh "$program")
    echo "aarch64 $package: $rate MiB/s of 5"
    awk -v rate="$rate" 'BEGIN { exit !(rate >= 4.25 && rate <= 5.25) }'
done
