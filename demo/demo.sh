#!/bin/sh
# The main job on real input: copies one file twice, unlimited and at 20 MiB/s, and shows what each
# copy read from the disk while it ran. The file's pages are dropped from the cache before each.
set -eu
discnice=$(realpath "${1:-discnice}")
folder=$(realpath "$(mktemp -d "${TMPDIR:-.}/discnice-demo.XXXXXX")")
trap 'cd / && rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM
cd "$folder"

mebibytes=100
dd if=/dev/urandom of=input bs=1M count=$mebibytes conv=fsync status=none

cold() { dd if=input iflag=nocache count=0 status=none; }

# Draws one bar about every quarter of a second: what the process read since the last one.
watch() {
    before=0
    then=$(date +%s%N)
    while kill -0 "$1" 2>/dev/null; do
        sleep 0.25
        read=$(awk '/^read_bytes/ { print $2 }' "/proc/$1/io" 2>/dev/null) || read=
        [ -n "$read" ] || break
        now=$(date +%s%N)
        awk -v bytes="$((read - before))" -v nanos="$((now - then))" 'BEGIN {
            rate = bytes / nanos * 1e9 / 1048576
            bar = sprintf("%*s", rate / 4 > 60 ? 60 : rate / 4, ""); gsub(/ /, "#", bar)
            printf "  %6.1f MiB/s %s\n", rate, bar }'
        before=$read
        then=$now
    done
}

copy() {
    cold
    begin=$(date +%s.%N)
    "$@" dd if=input of=/dev/null bs=256k status=none &
    watch $!
    wait $!
    awk -v a="$begin" -v b="$(date +%s.%N)" -v m=$mebibytes \
        'BEGIN { printf "  %d MiB in %.1f s: %.1f MiB/s\n\n", m, b - a, m / (b - a) }'
}

echo "dd if=input of=/dev/null                            (unlimited)"
copy env
echo "discnice run --disk 20M -- dd if=input of=/dev/null"
copy "$discnice" run --disk 20M --
