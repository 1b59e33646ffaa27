#!/bin/bash
# A refresh of a large directory: many files, deep folders, names that are not UTF-8. Compares all
# contents and metadata before and after.
# usage: refresh.sh [FOLDER-ON-A-DISK] [FILES]; needs a release build, python3, getfacl, getfattr
set -u
dir=$(mktemp -d "${1:-/var/tmp}/discnice-refresh-XXXXXX")
count=${2:-100000}
discnice=$(realpath "${CARGO_TARGET_DIR:-target}/release/discnice")
[ -x "$discnice" ] || { echo "refresh.sh: build first: $discnice" >&2; exit 77; }
trap 'rm -rf "$dir"' EXIT
export XDG_CACHE_HOME=$dir

python3 - "$dir/tree" "$count" <<'PY'
import os, random, sys
top, count = os.fsencode(sys.argv[1]), int(sys.argv[2])
random.seed(2)
folders = [top]
os.mkdir(top)
for number in range(count // 200):
    folder = os.path.join(random.choice(folders[-40:]), b"d%d" % number)
    os.mkdir(folder)
    folders.append(folder)
# Deeper than PATH_MAX goes: from folder to folder.
here = os.open(top, os.O_RDONLY)
for level in range(300):
    name = b"deep \xff\xfe level %d" % level
    os.mkdir(name, dir_fd=here)
    there = os.open(name, os.O_RDONLY, dir_fd=here)
    os.close(here)
    here = there
file = os.open(b"bottom", os.O_CREAT | os.O_WRONLY, dir_fd=here)
os.write(file, b"reached")
for number in range(count):
    name = os.path.join(random.choice(folders), random.choice([b"plain%d", b"\xff\x80%d", b"new\nline%d", b" -rf %d"]) % number)
    with open(name, "wb") as out:
        out.write(os.urandom(random.choice([0, 10, 300, 5000])))
    if number % 1000 == 0:
        os.setxattr(name, "user.number", b"%d" % number)
        os.chmod(name, 0o4640)
    if number % 777 == 0:
        os.link(name, os.path.join(top, b"linked%d" % number))
        os.symlink(b"to \xff", os.path.join(top, b"symbolic%d" % number))
PY
# By hand, as a path can be too long for find and sha256sum.
manifest() {
    python3 - "$dir/tree" <<'PY'
import hashlib, os, sys
total = hashlib.sha256()
def walk(parent, path):
    for name in sorted(os.listdir(parent)):
        at = path + "/" + name
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
        facts = [at, status.st_mode, status.st_uid, status.st_gid, status.st_size, status.st_mtime_ns, status.st_nlink]
        if os.path.stat.S_ISLNK(status.st_mode):
            facts.append(os.readlink(name, dir_fd=parent))
        elif os.path.stat.S_ISDIR(status.st_mode):
            facts[4] = facts[6] = 0
            fd = os.open(name, os.O_RDONLY, dir_fd=parent)
            walk(fd, at)
            os.close(fd)
        else:
            fd = os.open(name, os.O_RDONLY, dir_fd=parent)
            facts.append(hashlib.sha256(os.read(fd, 1 << 20)).digest())
            facts += [(key, os.getxattr(fd, key)) for key in sorted(os.listxattr(fd))]
            os.close(fd)
        total.update(ascii(facts).encode())
sys.setrecursionlimit(10000)
import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
walk(os.open(sys.argv[1], os.O_RDONLY), "")
print(total.hexdigest())
PY
}
before=$(manifest)
start=$(date +%s%N)
"$discnice" refresh "$dir/tree" | tail -3
status=${PIPESTATUS[0]}
seconds=$((($(date +%s%N) - start) / 1000000000))
after=$(manifest)
left=$(ls -A "$dir" | grep -vc -e '^tree$' -e '^discnice$')
[ -n "$before" ] && [ "$before" = "$after" ] && same=same || same=DIFFERENT
echo "$count files refreshed in $seconds s, status $status; before and after: $same; left beside it: $left"
[ "$same" = same ] && [ "$status" = 0 ] && [ "$left" = 0 ]
