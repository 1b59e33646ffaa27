#!/bin/bash
# Figures 2 and 3: repeated runs over a warm cache that is smaller than the data. The cache is made
# small by a memory-limited group, the disk slow by a throttled one (cgroup v1 or v2).
# usage: sudo warm.sh [FOLDER-ON-A-DISK] [MEMORY-MiB] [DISK-MB/s]
set -u
memory=${2:-128}
rate=${3:-100}
dir=$(mktemp -d "${1:-/var/tmp}/discnice-warm-XXXXXX")
discnice=$(realpath "${CARGO_TARGET_DIR:-target}/release/discnice")
[ "$(id -u)" = 0 ] || { echo "warm.sh: needs root for groups" >&2; exit 77; }
[ -x "$discnice" ] || { echo "warm.sh: build first: $discnice" >&2; exit 77; }
[ -d /sys/fs/cgroup/memory ] || { echo "warm.sh: needs version 1 of the memory and blkio groups" >&2; exit 77; }
group=discnice-warm-$$
mem=/sys/fs/cgroup/memory/$group
io=/sys/fs/cgroup/blkio/$group
mkdir "$mem" "$io"
clean_up() {
    rm -rf "$dir"
    sleep 0.2
    rmdir "$mem" "$io"
}
trap clean_up EXIT

device=$(stat -c %d "$dir")
echo $((memory << 20)) >"$mem/memory.limit_in_bytes"
echo "$((device >> 8)):$((device & 255)) $((rate * 1000000))" >"$io/blkio.throttle.read_bps_device"
size=$((memory * 3 / 2))
for ((n = 0; n < 100; n++)); do
    # Lines of 100 bytes, which sort and grep like.
    head -c $((size * 10486 * 3 / 4 / 100 * 100)) /dev/urandom | base64 -w 99 | head -c $((size * 10485 / 100 * 100)) >"$dir/f$(printf %03d $n)"
done
cat "$dir"/f* >"$dir/big"
sync

# Runs a command line in the groups; prints its seconds.
run() {
    bash -c 'echo $$ >'"$mem"'/cgroup.procs; echo $$ >'"$io"'/cgroup.procs; cd '"$dir"'
        start=$(date +%s%N); eval "$1" >/dev/null; echo $((($(date +%s%N) - start) / 1000000))' - "$1"
}
cold() { echo 1 >"$mem/memory.force_empty" 2>/dev/null; dd if="$dir/big" iflag=nocache count=0 status=none
    for f in "$dir"/f*; do dd if="$f" iflag=nocache count=0 status=none; done; }
median() { printf '%s\n' "$@" | sort -n | sed -n 2p; }
compare() { # NAME PLAIN ORDERED
    local plain='' ordered='' i
    for i in 1 2 3; do
        [ $i = 1 ] && { cold; run "$2" >/dev/null; }
        plain="$plain $(run "$2")"
    done
    for i in 1 2 3; do
        [ $i = 1 ] && { cold; run "$3" >/dev/null; run "$3" >/dev/null; }
        ordered="$ordered $(run "$3")"
    done
    plain=$(median $plain) ordered=$(median $ordered)
    awk -v name="$1" -v p="$plain" -v o="$ordered" 'BEGIN {
        printf "%-22s plain %6d ms  ordered %6d ms  %.2f times faster\n", name, p, o, p / o }'
}
echo "$size MiB of data, $memory MiB of memory, disk at $rate MB/s; medians of 3 warm runs"
compare "scan of one file" "cat big" "$discnice order --cat --align 100 big"
compare "grep over 100 files" "grep -c zzzzz f*" "grep -c zzzzz \$($discnice order --cached f*)"
compare "cat of 100 files" "cat f*" "cat \$($discnice order --cached f*)"
echo -1 >"$mem/memory.limit_in_bytes"
compare "grep, all cached" "grep -c zzzzz f*" "grep -c zzzzz \$($discnice order --cached f*)"
