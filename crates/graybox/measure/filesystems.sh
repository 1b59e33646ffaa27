#!/bin/bash
# FCCD against the truth on ext4, xfs, btrfs, tmpfs, overlayfs and FUSE.
# usage: sudo filesystems.sh [FOLDER-WITH-2-GB-FREE] [MiB]
# needs: root, mkfs.xfs, mkfs.btrfs, bindfs; a release build of the example fccd_accuracy
set -u
base=$(mktemp -d "${1:-/var/tmp}/discnice-fs-XXXXXX")
mib=${2:-256}
example=${CARGO_TARGET_DIR:-target}/release/examples/fccd_accuracy
[ "$(id -u)" = 0 ] || { echo "filesystems.sh: needs root to mount" >&2; exit 77; }
[ -x "$example" ] || { echo "filesystems.sh: build the example first: $example" >&2; exit 77; }

mounted=()
clean_up() {
    for ((i = ${#mounted[@]} - 1; i >= 0; i--)); do umount "${mounted[i]}"; done
    rm -rf "$base"
}
trap clean_up EXIT

measure() { # NAME
    echo "== $1"
    "$example" "$base/$1" "$mib"
}

for fs in ext4 xfs btrfs; do
    truncate -s $((mib * 2 + 512))M "$base/$fs.img"
    mkfs.$fs -q "$base/$fs.img" && mkdir "$base/$fs" &&
        mount -o loop "$base/$fs.img" "$base/$fs" && mounted+=("$base/$fs") && measure $fs
done
mkdir "$base/tmpfs" && mount -t tmpfs -o size=$((mib * 2))M none "$base/tmpfs" &&
    mounted+=("$base/tmpfs") && measure tmpfs
mkdir "$base/ext4/"{lower,upper,work,fuse} "$base/overlay" "$base/fuse"
mount -t overlay -o "lowerdir=$base/ext4/lower,upperdir=$base/ext4/upper,workdir=$base/ext4/work" \
    none "$base/overlay" && mounted+=("$base/overlay") && measure overlay
bindfs "$base/ext4/fuse" "$base/fuse" && mounted+=("$base/fuse") && measure fuse
