#!/bin/bash
# Figures 2 and 3: repeated runs over a warm cache that is smaller than the data. The cache is made
# small by a memory-limited group, the disk slow by a throttled one (cgroup v1). The data are 1.5 times
# the memory that there is for them; what the programs take for themselves comes on top. As a third of
# the data has to come from the disk, no order can be more than 3.0 times faster, and it is so much
# faster only if nothing but the disk takes time. What was read from the disk is counted, too.
# usage: sudo warm.sh [FOLDER-ON-A-DISK] [MEMORY-MiB] [DISK-MB/s] [files|sort|cold|hot ...]
set -u
memory=${2:-384}
own=8
rate=${3:-200}
parts=${*:4}
parts=${parts:-files sort cold hot}
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
device=$((device >> 8)):$((device & 255))
echo $(((memory + own) << 20)) >"$mem/memory.limit_in_bytes"
echo "$device $((rate * 1000000))" >"$io/blkio.throttle.read_bps_device"
size=$((memory * 3 / 2))
for ((n = 0; n < 100; n++)); do
    # Lines of 100 bytes, which sort and grep like.
    head -c $((size * 10486 * 3 / 4 / 100 * 100)) /dev/urandom | base64 -w 99 | head -c $((size * 10485 / 100 * 100)) >"$dir/f$(printf %03d $n)"
done
cat "$dir"/f* >"$dir/big"
sync

bytes_read() { awk -v device="$device" '$1 == device && $2 == "Read" { n = $3 } END { printf "%.0f", n }' "$io/blkio.throttle.io_service_bytes"; }

# Runs a command line in the groups; prints its milliseconds, or those up to the moment in .stamp,
# and the bytes that the groups have read from the disk.
run() {
    local before
    before=$(bytes_read)
    rm -f "$dir/.stamp"
    bash -c 'echo $$ >'"$mem"'/cgroup.procs; echo $$ >'"$io"'/cgroup.procs; cd '"$dir"'
        stamp() { date +%s%N >.stamp; }
        # A program whose own memory and files are not in question.
        outside() { echo $BASHPID >/sys/fs/cgroup/memory/cgroup.procs; echo $BASHPID >/sys/fs/cgroup/blkio/cgroup.procs; exec "$@"; }
        start=$(date +%s%N); eval "$1" >/dev/null; end=$(cat .stamp 2>/dev/null || date +%s%N)
        echo -n $(((end - start) / 1000000))' - "$1"
    echo ",$(($(bytes_read) - before))"
}
cold() {
    echo 1 >"$mem/memory.force_empty" 2>/dev/null
    for f in "$dir"/big "$dir"/f*; do dd if="$f" iflag=nocache count=0 status=none; done
}
median() { printf '%s\n' "$@" | sort -n | sed -n $((($# + 1) / 2))p; }
report() { # NAME PLAIN ORDERED: each "MILLISECONDS,BYTES"
    awk -v name="$1" -v plain="$2" -v ordered="$3" 'BEGIN {
        split(plain, p, ","); split(ordered, o, ",")
        printf "%-24s plain %6d ms %4d MiB read  ordered %6d ms %4d MiB read  %.3f times faster\n", \
            name, p[1], p[2] / 1048576, o[1], o[2] / 1048576, p[1] / o[1] }'
}
warm() { # NAME PLAIN ORDERED: each over the cache that the run before has left
    local plain='' ordered='' i
    cold
    run "$2" >/dev/null
    for i in 1 2 3; do plain="$plain $(run "$2")"; done
    cold
    for i in 1 2; do run "$3" >/dev/null; done
    for i in 1 2 3; do ordered="$ordered $(run "$3")"; done
    report "$1" "$(median $plain)" "$(median $ordered)"
}
bound() { # NAME PLAIN: what no order can beat, the same with all of it in memory
    local all='' i
    echo -1 >"$mem/memory.limit_in_bytes"
    run "$2" >/dev/null
    for i in 1 2 3; do all="$all $(run "$2")"; done
    awk -v name="$1" -v all="$(median $all)" 'BEGIN { split(all, a, ","); printf "%-24s all cached %6d ms\n", name, a[1] }'
    cold
    echo $(((memory + own) << 20)) >"$mem/memory.limit_in_bytes"
}
alike() { # ROUNDS PREPARE NAME PLAIN ORDERED: in turns, each after PREPARE
    local plain='' ordered='' i
    for ((i = 0; i < $1; i++)); do
        $2; plain="$plain $(run "$4")"
        $2; ordered="$ordered $(run "$5")"
    done
    report "$3" "$(median $plain)" "$(median $ordered)"
}
order="$discnice order"
# Sorts as the paper does: the time of the reading phase, with the heap and the runs elsewhere.
sorting='outside sort -S 100M -T /var/tmp'
export LC_ALL=C
echo "$size MiB of data, $memory MiB of memory for them, disk at $rate MB/s; medians of warm runs"

part_files() {
    warm "scan of one file" "cat big" "$order --cat --align 100 big"
    warm "grep over 100 files" "grep -c zzzzz f*" "grep -c zzzzz \$($order --cached f*)"
    warm "cat of 100 files" "cat f*" "cat \$($order --cached f*)"
    bound "grep over 100 files" "grep -c zzzzz f*"
}
part_sort() {
    warm "sort, reading" "{ cat big; stamp; } | $sorting" "{ $order --cat --align 100 big; stamp; } | $sorting"
    warm "sort, all of it" "cat big | $sorting" "$order --cat --align 100 big | $sorting"
    bound "sort, all of it" "cat big | $sorting"
}
part_cold() { # Nothing cached.
    alike 3 cold "grep over 100 files" "grep -c zzzzz f*" "grep -c zzzzz \$($order --cached f*)"
    alike 3 cold "scan of one file" "cat big" "$order --cat --align 100 big"
}
part_hot() { # All cached.
    echo -1 >"$mem/memory.limit_in_bytes"
    cat "$dir"/big "$dir"/f* >/dev/null
    alike 41 : "grep over 100 files" "grep -c zzzzz f*" "grep -c zzzzz \$($order --cached f*)"
    alike 41 : "scan of one file" "cat big" "$order --cat --align 100 big"
}
for part in $parts; do
    echo "$part:"
    "part_$part"
done
