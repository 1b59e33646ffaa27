#!/bin/sh
# What each test does with an installed DiscNice, as an ordinary user: use.sh PROGRAM. Prints the rate held, in MiB/s.
set -eu
"$1" --version >&2
file=$(mktemp "${2:-$HOME}/use.XXXXXX")
trap 'rm -f "$file"' EXIT
seconds() { awk '{ print $1 }' /proc/uptime; }
begin=$(seconds)
"$1" run --disk 5M -- dd if=/dev/zero of="$file" bs=131072 count=240 conv=fsync 2>/dev/null
awk -v a="$begin" -v b="$(seconds)" 'BEGIN { printf "%.2f\n", 30 / (b - a) }'
