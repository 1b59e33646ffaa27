#!/bin/sh
# Boots kernels of other Debian releases below qemu and tries there, as an ordinary user, all that depends on the kernel:
#
#   tests/kernels/run.sh PROGRAM LIBRARY [RELEASE[:SCOPE]...]
#
# RELEASE is a release whose kernel is booted, SCOPE what kernel.yama.ptrace_scope is there; bullseye:1 bookworm:0 bookworm:1
# bookworm:3 trixie:1 sid:1 unless told otherwise. Needs root (for debootstrap), debootstrap, dpkg, qemu-system-x86 and
# e2fsprogs; the program must have been built for the C library of DISCNICE_GUEST (bookworm) or an older one. DISCNICE_ROOTS
# keeps what was downloaded. DISCNICE_ACCELERATOR is qemu's -accel; the processor is emulated unless told otherwise, as
# virtualization within virtual machines works on few.
# Prints a line for each check; exit status 0 if all hold, 1 if any does not, 125 if they could not be tried.
set -eu

fail() { echo "kernels: $*" >&2; exit 125; }

here=$(realpath "$(dirname "$0")")
[ $# -ge 2 ] || fail "usage: $0 PROGRAM LIBRARY [RELEASE[:SCOPE]...]"
program=$(realpath "$1") library=$(realpath "$2")
shift 2
[ $# -gt 0 ] || set -- bullseye:1 bookworm:0 bookworm:1 bookworm:3 trixie:1 sid:1
[ "$(id -u)" = 0 ] || fail "debootstrap needs root"
for tool in debootstrap dpkg mke2fs qemu-system-x86_64; do
    command -v "$tool" >/dev/null || fail "no $tool"
done
# A boot with all checks takes a minute on an emulated processor.
patience=600
work=$(mktemp -d "${TMPDIR:-/var/tmp}/discnice-kernels.XXXXXX")
roots=${DISCNICE_ROOTS:-$work/roots}
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
mkdir -p "$roots"

# What a step prints is shown if it fails.
quietly() { "$@" >"$work/log" 2>&1 || { tail "$work/log" >&2; fail "$1 failed"; }; }

# The guests' root, with what makes an initial RAM disk for any of the kernels.
guest=$roots/guest-${DISCNICE_GUEST:-bookworm}
if [ ! -d "$guest" ]; then
    quietly debootstrap --variant=minbase --include=procps,rsync,busybox-static,kmod,initramfs-tools,zstd \
        "${DISCNICE_GUEST:-bookworm}" "$guest.new"
    mv "$guest.new" "$guest"
fi

# The folder with the kernel of a release, and its modules.
kernel() {
    folder=$roots/kernel-$1
    if [ ! -d "$folder" ]; then
        quietly debootstrap --variant=minbase --include=linux-image-cloud-amd64 --download-only "$1" "$work/$1"
        for package in "$work/$1"/var/cache/apt/archives/linux-*.deb; do
            quietly dpkg -x "$package" "$folder.new"
        done
        mv "$folder.new" "$folder"
    fi
    echo "$folder"
}

# Makes an image that boots that kernel: image.ext4, vmlinuz and initrd in $work.
image() {
    modules=$(find "$1" -path '*lib/modules/*' -prune -type d | head -1)
    version=${modules##*/}
    root=$work/root
    rm -rf "$root"
    cp -a "$guest" "$root"
    mkdir -p "$root/usr/lib/modules"
    cp -a "$modules" "$root/usr/lib/modules"
    # Newer packages keep both beside the modules.
    for file in vmlinuz config; do
        from=$1/boot/$file-$version
        [ -f "$from" ] || from=$modules/$file
        cp "$from" "$root/boot/$file-$version"
    done
    quietly chroot "$root" depmod "$version"
    quietly unshare --mount --pid --fork sh -c \
        "mount -t proc proc '$root/proc' && chroot '$root' mkinitramfs -o /boot/initrd '$version'"
    mv "$root/boot/initrd" "$root/boot/vmlinuz-$version" "$work"
    mv "$work/vmlinuz-$version" "$work/vmlinuz"
    install -D -m 755 "$program" "$root/usr/local/bin/discnice"
    install -D -m 644 "$library" "$root/usr/local/lib/discnice/libdiscnice.so"
    strip "$root/usr/local/bin/discnice"
    install -m 755 "$here/init.sh" "$here/checks.sh" "$root"
    rm -f "$work/image.ext4"
    truncate -s 2G "$work/image.ext4"
    quietly mke2fs -q -t ext4 -d "$root" "$work/image.ext4"
}

boot() {
    timeout "$patience" qemu-system-x86_64 -accel "${DISCNICE_ACCELERATOR:-tcg,thread=multi}" -cpu max -m 2048 -smp 2 \
        -nic none -display none -monitor none -serial stdio -no-reboot -kernel "$work/vmlinuz" -initrd "$work/initrd" \
        -drive "file=$work/image.ext4,if=virtio,format=raw,snapshot=on" \
        -append "console=ttyS0 quiet panic=5 root=/dev/vda rw init=/init.sh yama=$1" </dev/null | tr -d '\r'
}

failed=0 previous=
for word in "$@"; do
    release=${word%%:*} scope=0
    [ "$release" = "$word" ] || scope=${word#*:}
    if [ "$release" != "$previous" ]; then
        image "$(kernel "$release")"
        previous=$release
    fi
    boot "$scope" >"$work/console"
    # Before that the firmware speaks.
    sed -n '/^kernel /,$p' "$work/console"
    if ! grep -q '^end$' "$work/console" || grep -q '^WRONG' "$work/console"; then
        failed=1
    fi
done
exit $failed
