#!/bin/bash
# FCCD against the truth on ext4, xfs, btrfs, tmpfs, overlayfs and FUSE.
# Tables, and the plots on one page.
# usage: sudo filesystems.sh [FOLDER-WITH-2-GB-FREE] [MiB] [PAGE.html] [FILE-SYSTEM ...]
# needs: root, mkfs.xfs, mkfs.btrfs, bindfs; a release build of the example fccd_accuracy
set -u
base=$(mktemp -d "${1:-/var/tmp}/discnice-fs-XXXXXX")
mib=${2:-256}
page=$(realpath -m "${3:-figure-1.html}")
wanted=" ${*:4} "
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
    "$example" "$base/$1" "$mib" "$base/plot.svg" || return
    { echo "<h2>$1</h2>"; cat "$base/plot.svg"; } >>"$page"
}
is_wanted() { [ -z "${wanted// /}" ] || [[ $wanted == *" $1 "* ]]; }
echo '<!DOCTYPE html><meta charset="utf-8"><title>Figure 1</title><h1>What is cached: right pages by each means</h1>' >"$page"

for fs in ext4 xfs btrfs; do
    is_wanted $fs || continue
    truncate -s $((mib * 2 + 512))M "$base/$fs.img"
    mkfs.$fs -q "$base/$fs.img" && mkdir "$base/$fs" &&
        mount -o loop "$base/$fs.img" "$base/$fs" && mounted+=("$base/$fs") && measure $fs
done
if is_wanted tmpfs; then
    mkdir "$base/tmpfs" && mount -t tmpfs -o size=$((mib * 2))M none "$base/tmpfs" &&
        mounted+=("$base/tmpfs") && measure tmpfs
fi
mkdir "$base/"{lower,upper,work,overlay,below,fuse}
if is_wanted overlay; then
    mount -t overlay -o "lowerdir=$base/lower,upperdir=$base/upper,workdir=$base/work" \
        none "$base/overlay" && mounted+=("$base/overlay") && measure overlay
fi
if is_wanted fuse; then
    bindfs "$base/below" "$base/fuse" && mounted+=("$base/fuse") && measure fuse
fi
echo "plots: $page"
