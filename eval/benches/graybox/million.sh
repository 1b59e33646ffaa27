#!/bin/bash
# Orders N files (default 1,000,000) with warm metadata: time and memory, from a find -print0.
# usage: million.sh [FOLDER-ON-A-DISK] [N]; needs a release build and GNU time or bash
set -u
dir=$(mktemp -d "${1:-/var/tmp}/discnice-million-XXXXXX")
count=${2:-1000000}
discnice=${CARGO_TARGET_DIR:-target}/release/discnice
trap 'rm -rf "$dir"' EXIT
[ -x "$discnice" ] || { echo "million.sh: build first: $discnice" >&2; exit 77; }

python3 - "$dir" "$count" <<'PY'
import os, sys
top, count = sys.argv[1], int(sys.argv[2])
for part in range(0, count, 1000):
    folder = f"{top}/{part // 1000:06}"
    os.mkdir(folder)
    for number in range(part, min(part + 1000, count)):
        fd = os.open(f"{folder}/{number:08}", os.O_CREAT | os.O_WRONLY)
        os.write(fd, b"contents\n")
        os.close(fd)
PY
# The metadata are warm; what making the files has left to write is another matter.
sync
find "$dir" -type f -print0 >"$dir.list"
trap 'rm -rf "$dir" "$dir.list"' EXIT
for how in --cached --layout --compose; do
    python3 - "$discnice" "$how" "$dir.list" <<'PY'
import os, resource, subprocess, sys, time
start = time.monotonic()
with open(sys.argv[3], "rb") as names:
    out = subprocess.run([sys.argv[1], "order", sys.argv[2], "-0"], stdin=names, stdout=subprocess.PIPE)
taken = time.monotonic() - start
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
print(f"{sys.argv[2]:<10} {out.stdout.count(0):>9} files  {taken:6.2f} s  {peak:6.0f} MiB")
PY
done
find "$dir" -type f -print0 | "$discnice" order -0 | tr -cd '\0' | wc -c | sed 's/^/streamed from find: /'
