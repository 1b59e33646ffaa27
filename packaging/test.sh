#!/bin/sh
# Installs each package of dist/ in a root of its own, holds a job with it as an ordinary user, and removes it again:
# test.sh [deb|upgrade|alpine|home_folder|old|rpm]..., by default all. Needs root, debootstrap, busybox-static, musl, rpm2cpio.
# Prints a table; the status tells whether all was as it must be.
set -eu
cd "$(dirname "$0")/.."
dist=$PWD/dist
here=$PWD/packaging
work=$(mktemp -d "${TMPDIR:-/var/tmp}/discnice-packages.XXXXXX")
base=${DISCNICE_ROOT:-$work/base}
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
user=1000
failed=0

base() { [ -d "$base" ] || debootstrap --variant=minbase bookworm "$base" >"$work/debootstrap.log"; }

# Commands in a root, with namespaces of their own, so that nothing of them outlives them: within ROOT UID COMMAND...
within() {
    (
        export ROOT="$1" WHO="$2"
        shift 2
        # shellcheck disable=SC2016
        exec unshare --mount --pid --ipc --fork --kill-child sh -c '
            mount -t proc proc "$ROOT/proc" && mount --rbind /dev "$ROOT/dev" && mount -t tmpfs tmpfs "$ROOT/run" &&
            mkdir -p -m 700 "$ROOT/run/user/1000" && chown 1000:1000 "$ROOT/run/user/1000" || exit 1
            HOME=/home/user PATH=/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin LC_ALL=C
            [ "$WHO" = 0 ] || export XDG_RUNTIME_DIR=/run/user/1000
            export HOME PATH LC_ALL DEBIAN_FRONTEND=noninteractive
            exec chroot --userspec="$WHO:$WHO" "$ROOT" "$@"' sh "$@"
    )
}

# A root NAME like the base one, with an ordinary user's home.
root() {
    base
    mkdir "$work/$1"
    cp -a "$base/." "$work/$1"
    home "$work/$1"
}
home() {
    mkdir -p "$1/home/user"
    cp "$here/use.sh" "$1/use.sh"
    chown $user:$user "$1/home/user"
}

# All files of a root but those in which package managers note what they did.
files() { (cd "$1" && find . \( -path ./proc -o -path ./dev -o -path ./run -o -path ./var/log -o -path ./var/lib/dpkg \
    -o -path ./var/cache -o -path ./var/lib/apt -o -path ./etc/ld.so.cache -o -path ./tmp \) -prune -o -print | sort); }

row() { printf '%-34s %-34s %8s %8s  %s\n' "$@"; }

# One line of the table: row of NAME INSTALLATION SECONDS RATE LEFT-OVER, of which the last two are judged.
judge() {
    row "$1" "$2" "$3" "$4" "${5:-nothing}"
    awk -v rate="$4" 'BEGIN { exit !(rate >= 4.5 && rate <= 5.25) }' && [ -z "$5" ] || failed=1
}

now() { date +%s.%N; }
since() { awk -v a="$1" -v b="$(now)" 'BEGIN { printf "%.1f", b - a }'; }
left() { files "$1" | comm -13 "$1.before" - | tr '\n' ' '; }

deb() {
    root deb
    cp "$dist"/*.deb "$work/deb/tmp/"
    files "$work/deb" >"$work/deb.before"
    begin=$(now)
    within "$work/deb" 0 sh -c 'apt-get install -y /tmp/discnice_*.deb' >"$work/log" 2>&1 || cat "$work/log" >&2
    took=$(since "$begin")
    rate=$(within "$work/deb" $user sh /use.sh discnice)
    within "$work/deb" 0 dpkg --purge discnice >"$work/log" 2>&1 || cat "$work/log" >&2
    judge "bookworm" "apt install ./discnice_*.deb" "$took" "$rate" "$(left "$work/deb")"
}

# The package is installed again, with other files, and removed, while a job runs.
upgrade() {
    root upgrade
    cp "$dist"/discnice_*.deb "$work/upgrade/tmp/"
    files "$work/upgrade" >"$work/upgrade.before"
    # shellcheck disable=SC2016
    rate=$(within "$work/upgrade" 0 sh -ec '
        dpkg -i /tmp/discnice_*.deb >/dev/null
        mkdir /tmp/new && dpkg-deb -R /tmp/discnice_*.deb /tmp/new
        sed -i "s/^Version:.*/Version: 99-1/" /tmp/new/DEBIAN/control
        printf changed >>/tmp/new/usr/lib/discnice/libdiscnice.so
        dpkg-deb -b /tmp/new /tmp/new.deb >/dev/null
        setpriv --reuid=1000 --regid=1000 --clear-groups env XDG_RUNTIME_DIR=/run/user/1000 sh /use.sh discnice /home/user >/tmp/rate &
        job=$!
        sleep 1.5
        dpkg -i /tmp/new.deb >/dev/null
        sleep 1
        dpkg --purge discnice >/dev/null
        wait $job
        cat /tmp/rate')
    judge "bookworm, upgrade and removal" "dpkg -i while a job runs" - "$rate" "$(left "$work/upgrade")"
}

# A root with another C library and hardly anything in it.
alpine() {
    mkdir -p "$work/alpine/bin" "$work/alpine/lib" "$work/alpine/tmp" "$work/alpine/proc" "$work/alpine/dev" "$work/alpine/run"
    cp /bin/busybox "$work/alpine/bin/"
    for name in $(/bin/busybox --list); do
        [ "$name" = busybox ] || ln -s busybox "$work/alpine/bin/$name"
    done
    cp /lib/x86_64-linux-musl/libc.so "$work/alpine/lib/ld-musl-x86_64.so.1"
    printf '#include <unistd.h>\n#include <string.h>\n#include <fcntl.h>\nint main(int c, char **v) { static char b[131072]; int n = 240, f; %s }\n' \
        'while (--c) if (!strncmp(v[c], "of=", 3)) f = open(v[c] + 3, O_WRONLY); while (n--) write(f, b, sizeof b); return fsync(f);' \
        >"$work/dd.c"
    rm "$work/alpine/bin/dd"
    musl-gcc -O1 -w -o "$work/alpine/bin/dd" "$work/dd.c"
    chmod 1777 "$work/alpine/tmp"
    home "$work/alpine"
    by_tarball alpine "musl and busybox" /bin/sh
}

home_folder() {
    root home
    by_tarball home "bookworm, no root, no compiler" /bin/sh
}

# glibc 2.31, which has dlsym(3) and threads in libraries of their own.
old() {
    if [ -n "${DISCNICE_OLD_ROOT:-}" ]; then
        cp -a "$DISCNICE_OLD_ROOT" "$work/old"
    else
        debootstrap --variant=minbase bullseye "$work/old" >"$work/debootstrap.log"
    fi
    home "$work/old"
    by_tarball old "bullseye, no root, no compiler" /bin/sh
}

by_tarball() {
    mkdir "$work/$1.unpacked"
    tar -xJf "$dist"/discnice-[0-9]*-x86_64.tar.xz -C "$work/$1.unpacked"
    mv "$work/$1.unpacked"/* "$work/$1/tmp/discnice"
    files "$work/$1" >"$work/$1.before"
    begin=$(now)
    within "$work/$1" $user "$3" /tmp/discnice/install.sh >"$work/log" 2>&1 || cat "$work/log" >&2
    took=$(since "$begin")
    rate=$(within "$work/$1" $user "$3" /use.sh /home/user/.local/bin/discnice)
    within "$work/$1" $user "$3" /home/user/.local/lib/discnice/uninstall.sh
    judge "$2" "./install.sh" "$took" "$rate" "$(left "$work/$1")"
}

rpm() {
    root rpm
    files "$work/rpm" >"$work/rpm.before"
    begin=$(now)
    rpm2cpio "$dist"/discnice-*.rpm | (cd "$work/rpm" && cpio --quiet -id --no-absolute-filenames)
    took=$(since "$begin")
    rate=$(within "$work/rpm" $user sh /use.sh discnice)
    command rpm -qlp "$dist"/discnice-*.rpm | (cd "$work/rpm" && sed 's|^/||' | while read -r file; do
        rm -f "$file"
        rmdir -p "$(dirname "$file")" 2>/dev/null || true
    done)
    judge "bookworm, by rpm2cpio" "rpm2cpio discnice-*.rpm | cpio -id" "$took" "$rate" "$(left "$work/rpm")"
}

row root install seconds MiB/s "left over"
for what in ${*:-deb upgrade alpine home_folder old rpm}; do
    $what
done
exit $failed
