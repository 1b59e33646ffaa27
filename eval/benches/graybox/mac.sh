#!/bin/bash
# Figure 7: competing sorts in a memory-limited group with swap (zram), with pass sizes given and
# with pass sizes asked of MAC.
# usage: [ROUNDS=5] [PERCENTS="25 50 75 90"] sudo -E mac.sh [GROUP-MiB] [TOTAL-MiB-OF-ALL] ["CALLERS ..."]
set -u
limit=${1:-512}
total=${2:-1536}
rounds=${ROUNDS:-5}
example=$(realpath "${CARGO_TARGET_DIR:-target}/release/examples/mac_sort")
[ "$(id -u)" = 0 ] || { echo "mac.sh: needs root for groups and swap" >&2; exit 77; }
[ -x "$example" ] || { echo "mac.sh: build the example first: $example" >&2; exit 77; }
[ -d /sys/fs/cgroup/memory ] || { echo "mac.sh: needs version 1 of the memory group" >&2; exit 77; }
grep -q zram0 /proc/swaps && { echo "mac.sh: zram0 is in use" >&2; exit 77; }
base=$(mktemp -d)
group=/sys/fs/cgroup/memory/discnice-mac-$$
mkdir "$group"
echo 1G >/sys/block/zram0/disksize && mkswap -q /dev/zram0 >/dev/null && swapon /dev/zram0 || exit 77
clean_up() {
    swapoff /dev/zram0
    echo 1 >/sys/block/zram0/reset
    rmdir "$group"
    rm -rf "$base"
}
trap clean_up EXIT
export XDG_RUNTIME_DIR=$base
echo $((limit << 20)) >"$group/memory.limit_in_bytes"

compete() { # CALLERS PASS...: one line of: name, wall ms, mean pass, gb_alloc, waited, major faults, killed
    local callers=$1 i
    shift
    local start killed=0 pids=()
    start=$(date +%s%N)
    for ((i = 0; i < callers; i++)); do
        (echo $BASHPID >"$group/cgroup.procs"; exec "$example" $((total / callers)) "$@" >"$base/out$i") &
        pids+=($!)
    done
    for i in "${pids[@]}"; do wait "$i" || killed=$((killed + 1)); done
    local wall=$((($(date +%s%N) - start) / 1000000))
    cat "$base"/out* | awk -v wall=$wall -v name="$callers callers, $*" -v killed=$killed '
        { pass += $3; alloc += $4; wait += $5; faults += $6 }
        END { printf "%s\t%d\t%.0f\t%.2f\t%.2f\t%d\t%d\n", name, wall, pass / NR, alloc, wait, faults, killed }'
    rm -f "$base"/out*
}
echo "$total MiB to sort in all, $limit MiB of memory, 1 GiB of zram swap; medians of $rounds rounds"
for callers in ${3:-1 4 16}; do
    share=$((limit / callers))
    # Round by round, so that a slow spell of the machine hits all cases alike.
    for ((round = 0; round < rounds; round++)); do
        for percent in ${PERCENTS:-25 50 75 90}; do compete $callers $((share * percent / 100)); done
        compete $callers mac $((share / 4 > 8 ? share / 4 : 8))
    done | python3 -c '
import statistics, sys
cases = {}
for line in sys.stdin:
    name, *values = line.rstrip("\n").split("\t")
    cases.setdefault(name, []).append([float(value) for value in values])
walls = {name: statistics.median(run[0] for run in runs) for name, runs in cases.items()}
best = min(wall for name, wall in walls.items() if "mac" not in name)
for name, runs in cases.items():
    mid = [statistics.median(column) for column in zip(*runs)]
    faults, killed = sum(run[4] for run in runs), sum(run[5] for run in runs)
    print(f"{name:<20} wall {mid[0] / 1000:6.2f} s ({walls[name] / best - 1:+4.0%})  mean pass {mid[1]:4.0f} MiB  "
          f"gb_alloc {mid[2]:5.2f} s  waited {mid[3]:5.2f} s  major faults {faults:.0f}  killed {killed:.0f}")
'
done
# What happens without admission.
for callers in ${3:-1 4 16}; do compete $callers $((limit / callers * 120 / 100)); done | awk -F '\t' '
    { printf "%-20s wall %6.2f s  major faults %d  killed %d\n", $1, $2 / 1000, $6, $7 }'
