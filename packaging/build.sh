#!/bin/sh
# Builds packages into dist/: build.sh [deb|tarball|rpm|wheel|oci]..., by default all of them.
# ARCHITECTURE=aarch64 cross-builds all but the .deb. Needs clang, lld and binutils-aarch64-linux-gnu.
#
# The .deb is built for the C library of this machine, as a distribution does it. All others are for machines that we do
# not know: the program is linked statically with musl, the library against symbols of glibc 2.17.
set -eu
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}"
tools=${DISCNICE_TOOLS:-$CARGO_TARGET_DIR/tools}
packaging/tools.sh "$tools"
PATH=$tools/bin:$tools/python/bin:$PATH
export PATH
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
release=$CARGO_TARGET_DIR/release
native=x86_64
architecture=${ARCHITECTURE:-$native}
musl=$architecture-unknown-linux-musl
gnu=$architecture-unknown-linux-gnu
portable=$release/portable/$architecture
mkdir -p dist
case $architecture in
    "$native") binutils= platform=amd64 packages="deb tarball rpm wheel oci" ;;
    aarch64) binutils=aarch64-linux-gnu- platform=arm64 packages="tarball rpm wheel oci" ;;
    *) echo "build.sh: no packages for $architecture; ARCHITECTURE is $native or aarch64" >&2; exit 125 ;;
esac
for target in $musl $gnu; do
    rustup target list --installed | grep -q "^$target\$" || rustup target add "$target"
done

# The program, gbp and the library for any machine, in $portable, with what debuggers need beside it.
portable() {
    [ -z "${made:-}" ] || return 0
    build_program
    build_library
    install -d "$portable"
    install -m 755 "$CARGO_TARGET_DIR/$musl/release/discnice" "$CARGO_TARGET_DIR/$musl/release/gbp" "$portable"
    install -m 644 "$library" "$portable"
    if "${binutils}objdump" -p "$portable/libdiscnice.so" | grep -E 'NEEDED|GLIBC_' ||
        "${binutils}nm" -D "$portable/libdiscnice.so" | grep 'U dlsym'; then
        echo "libdiscnice.so: needs what old systems lack" >&2
        exit 1
    fi
    STRIP="${binutils}strip" cargo xtask check-size "$portable/discnice"
    for file in discnice gbp libdiscnice.so; do
        "${binutils}objcopy" --only-keep-debug "$portable/$file" "$portable/$file.debug"
        "${binutils}strip" "$portable/$file"
        (cd "$portable" && "${binutils}objcopy" --add-gnu-debuglink="$file.debug" "$file")
    done
    tar -C "$portable" --owner=0 --group=0 -cJf "dist/discnice-$version-$architecture-debug.tar.xz" \
        discnice.debug gbp.debug libdiscnice.so.debug
    made=yes
}

# With its C library inside the program is larger than one for this machine, so more of it is built for size, and without the
# index of the tables for unwinding (80 kB): a program that aborts on panic unwinds nothing, and debuggers need no index.
build_program() {
    build=build
    [ "$architecture" = $native ] || build=zigbuild
    RUSTFLAGS="${RUSTFLAGS:-} -C link-arg=-Wl,--no-eh-frame-hdr" \
        cargo $build --release --locked -p discnice-cli -p discnice-graybox --target "$musl" \
        --config profile.release.opt-level=2 \
        --config 'profile.release.package.discnice-graybox.opt-level="s"'
}

# Sets $library.
build_library() {
    if [ "$architecture" = $native ]; then
        make --silent program
        library=$release/libdiscnice.so
        return
    fi
    # It starts before all other libraries (-z initfirst), which zig's linker does not know.
    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=clang \
        CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS="-Clink-arg=--target=aarch64-linux-gnu -Clink-arg=-fuse-ld=lld -Clink-arg=-nostartfiles" \
        cargo build --release --locked -p discnice-preload --target "$gnu"
    library=$CARGO_TARGET_DIR/$gnu/release/libdiscnice.so
}

# What `make install PREFIX=$2` installs of the portable build, below $1.
stage() {
    rm -rf "$1"
    make --silent docs
    make --silent install-program DESTDIR="$1" PREFIX="$2" PROGRAMS="$portable" LIBRARIES="$portable" STRIP=:
}

deb() {
    rm -rf "$release/stage"
    make --silent install DESTDIR="$release/stage" PREFIX=/usr
    gzip -9n "$release"/stage/usr/share/man/man1/*.1 "$release"/stage/usr/share/man/man5/*.5
    strip --strip-unneeded "$release/stage/usr/lib/"libdiscnice_testpoint.so.*.*
    strip --strip-debug "$release/stage/usr/lib/libdiscnice_testpoint.a"
    cargo deb --quiet --no-build --dbgsym -p discnice-cli -o "$PWD/dist"
    cargo deb --quiet --no-build -p discnice-capi -o "$PWD/dist"
}

tarball() {
    portable
    name=discnice-$version-$architecture
    folder=$release/$name
    stage "$folder/files" /
    for unit in discnice-policyd discnice-refresh@; do
        cp packaging/systemd/$unit.service.in "$folder/files/share/systemd/user/$unit.service"
    done
    install -m 755 packaging/install.sh "$folder/"
    install -m 644 LICENSE-MIT README.md "$folder/"
    tar -C "$release" --owner=0 --group=0 -cJf "dist/$name.tar.xz" "$name"
}

rpm() {
    portable
    stage "$release/stage-rpm" /usr
    cargo generate-rpm -p crates/cli --target-dir "$CARGO_TARGET_DIR" --arch "$architecture" -o dist/
}

# The program, the library and the module for Python 3.9 and later, for one user without root or a virtual environment.
# Units of systemd are left out, as only the user's pip knows where the program will be.
wheel() {
    portable
    stage "$release/stage-wheel" /
    # maturin wants the folder that its settings name to be there, as it is not for others who build the module.
    rm -rf bindings/wheel
    cp -r bindings/python bindings/wheel
    echo 'data = "discnice.data"' >>bindings/wheel/pyproject.toml
    install -d bindings/wheel/discnice.data/data
    rm -r "$release/stage-wheel/share/systemd"
    mv "$release/stage-wheel/bin" bindings/wheel/discnice.data/scripts
    mv "$release/stage-wheel/lib" "$release/stage-wheel/share" bindings/wheel/discnice.data/data/
    # zig links against the symbols of an old glibc.
    (cd bindings/wheel && maturin build --quiet --release --locked --zig --target "$gnu" --compatibility manylinux2014 --out ../../dist)
    rm -r bindings/wheel
    auditwheel show "dist/discnice-$version-"*"_$architecture.whl" | tr '\n' ' ' |
        grep -F "following platform tag: \"manylinux_2_17_$architecture\""
}

# An image for machines that run containers, made without a daemon.
oci() {
    portable
    stage "$release/stage-oci" /usr
    python3 packaging/oci.py "$release/stage-oci" "dist/discnice-$version-$architecture.oci.tar" "$platform" "$version"
}

for what in ${*:-$packages}; do
    $what
done
ls -l dist
