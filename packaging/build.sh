#!/bin/sh
# Builds packages into dist/: build.sh [deb|tarball|rpm]..., by default all of them.
#
# The .deb is built for the C library of this machine, as a distribution does it. All others are for machines that we do
# not know: the program is linked statically with musl, the library against symbols of glibc 2.17.
set -eu
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}"
tools=${DISCNICE_TOOLS:-$CARGO_TARGET_DIR/tools}
packaging/tools.sh "$tools"
PATH=$tools/bin:$PATH
export PATH
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
release=$CARGO_TARGET_DIR/release
musl=x86_64-unknown-linux-musl
portable=$release/portable
mkdir -p dist

# The program, gbp and the library for any machine, in $portable, with what debuggers need beside it.
portable() {
    [ -z "${made:-}" ] || return 0
    cargo build --release --locked -p discnice-cli -p discnice-graybox --target $musl
    make --silent program
    install -d "$portable"
    install -m 755 "$CARGO_TARGET_DIR/$musl/release/discnice" "$CARGO_TARGET_DIR/$musl/release/gbp" "$portable"
    install -m 644 "$release/libdiscnice.so" "$portable"
    if objdump -p "$portable/libdiscnice.so" | grep -E 'NEEDED|GLIBC_' ||
        nm -D "$portable/libdiscnice.so" | grep 'U dlsym'; then
        echo "libdiscnice.so: needs what old systems lack" >&2
        exit 1
    fi
    for file in discnice gbp libdiscnice.so; do
        objcopy --only-keep-debug "$portable/$file" "$portable/$file.debug"
        strip "$portable/$file"
        (cd "$portable" && objcopy --add-gnu-debuglink="$file.debug" "$file")
    done
    tar -C "$portable" --owner=0 --group=0 -cJf "dist/discnice-$version-x86_64-debug.tar.xz" \
        discnice.debug gbp.debug libdiscnice.so.debug
    made=yes
}

# What `make install PREFIX=$2` installs of the portable build, below $1.
stage() {
    rm -rf "$1"
    make --silent docs
    make --silent install-program DESTDIR="$1" PREFIX="$2" PROGRAMS="$portable" LIBRARIES="$portable"
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
    name=discnice-$version-x86_64
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
    cargo generate-rpm -p crates/cli --target-dir "$CARGO_TARGET_DIR" -o dist/
}

for what in ${*:-deb tarball rpm}; do
    $what
done
ls -l dist
