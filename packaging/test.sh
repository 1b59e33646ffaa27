#!/bin/sh
# Installs each package of dist/ in a root of its own, holds a job with it as an ordinary user, and removes it again:
# test.sh [deb|trixie|upgrade|alpine|home_folder|old|rpm|wheel|oci]..., by default all. Needs root, debootstrap, busybox-static,
# musl-tools, rpm, runc, umoci.
# Prints a table; the status tells whether all was as it must be.
set -eu
cd "$(dirname "$0")/.."
dist=$PWD/dist
here=$PWD/packaging
work=$(mktemp -d "${TMPDIR:-/var/tmp}/discnice-packages.XXXXXX")
# Roots of releases, which the next test uses again if this is given.
roots=${DISCNICE_ROOTS:-$work/roots}
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
user=1000
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
failed=0

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

# A root with an ordinary user's home: root NAME [RELEASE of Debian].
root() {
    release=${2:-bookworm}
    if [ ! -d "$roots/$release" ]; then
        mkdir -p "$roots"
        debootstrap --variant=minbase "$release" "$roots/$release.new" >"$work/log" || { tail "$work/log" >&2; exit 1; }
        mv "$roots/$release.new" "$roots/$release"
    fi
    mkdir "$work/$1"
    cp -a "$roots/$release/." "$work/$1"
    home "$work/$1"
}
home() {
    mkdir -p "$1/home/user"
    cp "$here/use.sh" "$1/use.sh"
    chown $user:$user "$1/home/user"
}

# All files of a root but those in which package managers note what they did.
files() { (cd "$1" && find . \( -path ./proc -o -path ./dev -o -path ./run -o -path ./var/log -o -path ./var/lib/dpkg \
    -o -path ./var/lib/rpm -o -path ./var/cache -o -path ./var/lib/apt -o -path ./etc/ld.so.cache -o -path ./tmp \) -prune -o -print | sort); }

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
    by_apt deb bookworm
}

# Another release than the one that the package was built on.
trixie() {
    root trixie trixie
    by_apt trixie trixie
}

by_apt() {
    cp "$dist"/*.deb "$work/$1/tmp/"
    files "$work/$1" >"$work/$1.before"
    begin=$(now)
    within "$work/$1" 0 sh -c 'apt-get install -y /tmp/discnice_*.deb' >"$work/log" 2>&1 || cat "$work/log" >&2
    took=$(since "$begin")
    rate=$(within "$work/$1" $user sh /use.sh discnice)
    within "$work/$1" 0 dpkg --purge discnice >"$work/log" 2>&1 || cat "$work/log" >&2
    judge "$2" "apt install ./discnice_*.deb" "$took" "$rate" "$(left "$work/$1")"
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
    rm "$work/alpine/bin/dd"
    musl-gcc -O1 -o "$work/alpine/bin/dd" "$here/dd.c"
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
    root old bullseye
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

# With the folders that a distribution of rpm has in its package `filesystem`.
rpm() {
    root rpm
    mkdir -p "$work/rpm/usr/share/licenses" "$work/rpm/usr/share/zsh/site-functions" \
        "$work/rpm/usr/share/fish/vendor_completions.d" "$work/rpm/usr/lib/systemd/user"
    files "$work/rpm" >"$work/rpm.before"
    begin=$(now)
    by_rpm -i --nodeps "$dist"/discnice-*.x86_64.rpm
    took=$(since "$begin")
    rate=$(within "$work/rpm" $user sh /use.sh discnice)
    by_rpm -e discnice
    judge "bookworm, database of rpm" "rpm -i discnice-*.rpm" "$took" "$rate" "$(left "$work/rpm")"
}

by_rpm() { command rpm --root "$work/rpm" --dbpath /var/lib/rpm "$@" 2>"$work/log" || cat "$work/log" >&2; }

# The command, its library and the module, for a user without root; pip leaves the folders that it made.
wheel() {
    root wheel
    within "$work/wheel" 0 sh -c 'apt-get update && apt-get install -y --no-install-recommends python3-pip' >"$work/log" 2>&1 || cat "$work/log" >&2
    cp "$dist"/discnice-*_x86_64.whl "$work/wheel/tmp/"
    files "$work/wheel" >"$work/wheel.before"
    begin=$(now)
    within "$work/wheel" $user sh -c 'pip install --user --break-system-packages --no-index /tmp/discnice-*.whl' >"$work/log" 2>&1 ||
        cat "$work/log" >&2
    took=$(since "$begin")
    rate=$(within "$work/wheel" $user sh /use.sh /home/user/.local/bin/discnice)
    within "$work/wheel" $user python3 -c 'import discnice.graybox as g; assert g.residency("/use.sh")' || failed=1
    within "$work/wheel" $user pip uninstall --yes --break-system-packages discnice >"$work/log" 2>&1 || cat "$work/log" >&2
    remains=$(for path in $(left "$work/wheel"); do [ -d "$work/wheel/$path" ] || echo "$path"; done)
    judge "bookworm, no root, no compiler" "pip install --user discnice-*.whl" "$took" "$rate" "$remains"
}

# A job in one container, and the image in another one that shares its processes.
oci() {
    mkdir -p "$work/job/rootfs/bin" "$work/layout"
    cp /bin/busybox "$work/job/rootfs/bin/"
    # Process 1 is not held; engines have one of their own for that (--init).
    # shellcheck disable=SC2016
    echo 'i=0; while [ $i -lt 2000 ]; do busybox dd if=/dev/zero of=/file bs=1048576 count=1 seek=$i conv=notrunc 2>/dev/null; i=$((i + 1)); done' \
        >"$work/job/rootfs/job"
    (cd "$work/job" && runc spec && python3 "$here/container.py" config.json "" /bin/busybox sh -c 'sh /job & wait')
    tar -xf "$dist"/discnice-*-x86_64.oci.tar -C "$work/layout"
    begin=$(now)
    umoci unpack --image "$work/layout:$version" "$work/beside" >"$work/log" 2>&1 || cat "$work/log" >&2
    took=$(since "$begin")
    runc run --detach --bundle "$work/job" --pid-file "$work/pid" discnice-job-$$ </dev/null >"$work/log" 2>&1
    pid=$(cat "$work/pid")
    sleep 0.2
    child=$(awk '/^NSpid:/ { print $NF }' "/proc/$(tr -d ' ' <"/proc/$pid/task/$pid/children")/status")
    python3 "$here/container.py" "$work/beside/config.json" "/proc/$pid/ns/pid" discnice attach --disk 5M "$child"
    runc run --detach --bundle "$work/beside" discnice-beside-$$ </dev/null >"$work/beside.log" 2>&1
    # What it wrote as it was attached is paid for by then; over some windows of 5 s its many short children make little difference.
    sleep 3
    rate=$(size=$(stat -c %s "$work/job/rootfs/file") && sleep 20 && stat -c %s "$work/job/rootfs/file" |
        awk -v before="$size" '{ printf "%.2f", ($1 - before) / 20 / 1048576 }')
    for name in beside job; do runc delete --force discnice-$name-$$; done
    judge "container beside a job's" "podman run oci-archive:..." "$took" "$rate" ""
}

row root install seconds MiB/s "left over"
for what in ${*:-deb trixie upgrade alpine home_folder old rpm wheel oci}; do
    $what
done
exit $failed
