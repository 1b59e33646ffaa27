#!/bin/bash
# Power cuts during discnice refresh: at random moments the disk of a running refresh is copied as
# it is, mounted as after a crash, and compared with what it was.
# needs: root, getfattr; a release build. FOLDER may be in memory (/dev/shm): the disk is an image.
# usage: sudo powercut.sh [CUTS] [ext4|xfs] [FOLDER]
set -u
cuts=${1:-200}
fs=${2:-ext4}
base=$(mktemp -d "${3:-/var/tmp}/discnice-cut-XXXXXX")
discnice=$(realpath "${CARGO_TARGET_DIR:-target}/release/discnice")
[ "$(id -u)" = 0 ] || { echo "powercut.sh: needs root to mount" >&2; exit 77; }
[ -x "$discnice" ] || { echo "powercut.sh: build first: $discnice" >&2; exit 77; }
command -v getfattr >/dev/null || { echo "powercut.sh: needs getfattr" >&2; exit 77; }
export XDG_CACHE_HOME=$base

clean_up() {
    for at in "$base/copy" "$base/disk"; do mountpoint -q "$at" && umount "$at"; done
    rm -rf "$base"
}
trap clean_up EXIT

# Everything that must be kept, of the tree in $1. Access times are not: reading moves them. Those of
# directories are that of an interrupted exchange until the next refresh: without them by a second word.
manifest() {
    directory='%T@\n'
    [ $# = 1 ] || directory='\n'
    (cd "$1" && find . -printf '%p %y %m %U %G %l ' \( -type d -printf "$directory" -o -printf '%T@ %s %n\n' \) | LC_ALL=C sort
        find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum
        # With "-m -" all of them, ACLs and capabilities too.
        find . -print0 | LC_ALL=C sort -z | xargs -0 getfattr -hd -m -)
}

# xfs does not mount two disks with one identity without being told; btrfs cannot at all.
case $fs in
ext4) options=loop ;;
xfs) options=loop,nouuid ;;
*) echo "powercut.sh: ext4 or xfs" >&2; exit 125 ;;
esac
mkdir "$base/disk" "$base/copy"
truncate -s 400M "$base/image"
mkfs.$fs -q "$base/image" >/dev/null && mount -o loop "$base/image" "$base/disk" || exit 1
tree=$base/disk/tree
mkdir -p "$tree/sub/deeper"
python3 - "$tree" <<'PY'
import os, random, struct, sys
random.seed(1)
for number in range(1500):
    folder = random.choice(["", "sub/", "sub/deeper/"])
    with open(f"{sys.argv[1]}/{folder}{number}", "wb") as file:
        file.write(random.randbytes(random.randrange(60000)))
with open(os.fsencode(sys.argv[1]) + b"/odd \xff\n", "wb") as file:
    file.truncate(5_000_000)
os.link(f"{sys.argv[1]}/odd \udcff\n", f"{sys.argv[1]}/sub/linked")
os.symlink("nowhere", f"{sys.argv[1]}/sub/link")
os.chown(f"{sys.argv[1]}/sub", 1234, 5678)
os.setxattr(f"{sys.argv[1]}/sub", "user.test", b"kept")
# An ACL as setfacl -m u:1234:r writes it: version 2, then tag, permissions and id of each entry.
entries = [(1, 6, -1), (2, 4, 1234), (4, 4, -1), (16, 4, -1), (32, 0, -1)]
acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
os.setxattr(f"{sys.argv[1]}/sub/link", "trusted.test", b"of a link", follow_symlinks=False)
for number in range(0, 1500, 100):
    for folder in ["", "sub/", "sub/deeper/"]:
        if os.path.exists(f"{sys.argv[1]}/{folder}{number}"):
            os.setxattr(f"{sys.argv[1]}/{folder}{number}", "system.posix_acl_access", acl)
PY
chmod 4711 "$tree/sub/linked"
sync
manifest "$tree" >"$base/wanted"
manifest "$tree" untimed >"$base/untimed"
# A file whose inode tells whether it was exchanged.
probe=$(cd "$tree" && find . -type f -links 1 | sort | tail -1)
"$discnice" refresh "$tree" >/dev/null || exit 1
start=$(date +%s%N)
"$discnice" refresh "$tree" >/dev/null || exit 1
whole=$((($(date +%s%N) - start) / 1000000))
echo "$fs: a refresh of $(wc -l <"$base/wanted") facts takes $whole ms"

bad=0 old=0 new=0 late=0 torn=0
for ((cut = 0; cut < cuts; cut++)); do
    inode=$(stat -c %i "$tree/$probe")
    "$discnice" refresh "$tree" >/dev/null 2>&1 &
    refresh=$!
    # Microseconds; half as long again, as the swap comes at the end of a refresh that may take longer.
    at=$((SRANDOM % (whole * 1500)))
    sleep "$((at / 1000000)).$(printf %06d $((at % 1000000)))"
    kill -STOP $refresh 2>/dev/null || late=$((late + 1))
    # The kernel goes on writing: only a copy that is like the image afterwards is of one moment.
    for _ in 1 2 3 4 5 6; do
        cp --sparse=always "$base/image" "$base/cut"
        cmp -s "$base/image" "$base/cut" && break
        torn=$((torn + 1))
    done
    kill -KILL $refresh 2>/dev/null
    wait $refresh 2>/dev/null
    if ! mount -o "$options" "$base/cut" "$base/copy"; then
        bad=$((bad + 1))
        continue
    fi
    if [ "$(stat -c %i "$base/copy/tree/$probe")" = "$inode" ]; then old=$((old + 1)); else new=$((new + 1)); fi
    manifest "$base/copy/tree" untimed | cmp -s - "$base/untimed" || { bad=$((bad + 1)); echo "cut $cut: differs"; }
    "$discnice" refresh "$base/copy/tree" >/dev/null || { bad=$((bad + 1)); echo "cut $cut: no recovery"; }
    manifest "$base/copy/tree" | cmp -s - "$base/wanted" || { bad=$((bad + 1)); echo "cut $cut: differs after recovery"; }
    [ "$(ls -A "$base/copy" | grep -vc '^lost+found$')" = 1 ] || { bad=$((bad + 1)); echo "cut $cut: something left"; }
    umount "$base/copy"
    # The kill itself, without a power cut.
    manifest "$tree" untimed | cmp -s - "$base/untimed" || { bad=$((bad + 1)); echo "kill $cut: differs"; }
done
"$discnice" refresh "$tree" >/dev/null || bad=$((bad + 1))
manifest "$tree" | cmp -s - "$base/wanted" || { bad=$((bad + 1)); echo "the last refresh: differs"; }
echo "$fs: $cuts power cuts and kills: $old found a file as it was, $new its copy, $late came late, $torn copies were torn and made again; $bad bad"
[ $bad = 0 ]
