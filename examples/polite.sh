#!/bin/sh
# Any running job, unmodified: start it, then let discnice regulate it by what it logs.
#
#     sh polite.sh DIRECTORY ARCHIVE.tar
#
# tar prints one line a file, so lines are its progress; bytes written are the other half.
set -eu
log=$(mktemp)
trap 'rm -f "$log"' EXIT
tar --create --verbose --file "$2" "$1" > "$log" &
discnice attach --polite --metric "lines:$log" --metric bytes --summary $!
wait $!
