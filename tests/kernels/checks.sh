#!/bin/sh
# What is tried in the guest: a line for each check, "ok" or "WRONG". Rates are in MiB/s.
cd || exit 1
size=20
write="if=/dev/zero of=file bs=128k count=$((size * 8)) conv=fsync"

now() { awk '{ print $1 }' /proc/uptime; }
say() { printf '%-5s %-30s %s\n' "$@"; }
judge() { if [ "$1" -eq 0 ]; then say ok "$2" "$3"; else say WRONG "$2" "$3"; fi; }

# held NAME COMMAND...: it moves 20 MiB at 5 MiB/s, and nothing is said. An emulated processor is slow, hence the lower bound.
held() {
    name=$1
    shift
    begin=$(now)
    "$@" >out 2>&1 </dev/null
    status=$?
    rate=$(awk -v a="$begin" -v b="$(now)" -v size=$size 'BEGIN { printf "%.2f", size / (b - a) }')
    said=$(grep '^discnice: ' out)
    awk -v rate="$rate" -v status=$status -v said="$said" \
        'BEGIN { exit !(status == 0 && said == "" && rate >= 1.5 && rate <= 5.25) }'
    judge $? "$name" "$rate, status $status${said:+, $said}"
}

cold() { dd if=file of=/dev/null iflag=nocache count=0 2>/dev/null; }

discnice doctor >findings 2>&1
judge $? "doctor" "$(grep -c '^ok' findings) findings"
grep '^BAD' findings

# The words of $write are meant to be split.
# shellcheck disable=SC2086
{
    held "write, library" discnice run --disk 5M -- dd $write
    held "write, static" discnice run --disk 5M --strict -- busybox dd $write
    held "write, static child" discnice run --disk 5M -- sh -c "busybox dd $write; true"
    held "write, from outside" discnice run --disk 5M --mechanism freeze -- dd $write
    held "write, static, from outside" discnice run --disk 5M --mechanism freeze -- busybox dd $write
}
cold
held "read, library" discnice run --disk 5M --strict -- dd if=file of=/dev/null bs=128k
cold
held "read, static" discnice run --disk 5M --strict -- busybox dd if=file of=/dev/null bs=128k
# Without a number nothing here is in its way.
# shellcheck disable=SC2086
discnice run -- dd $write 2>out
judge $? "gives way" "$(tail -1 out)"

mkdir -p shared
printf '[shared]\npath = %s/shared\nread only = yes\nuse chroot = no\n' "$PWD" >rsyncd.conf
mv file shared/
rsync --daemon --no-detach --port 8730 --config rsyncd.conf &
server=$!
busybox httpd -f -p 127.0.0.1:8731 -h shared &
web=$!
sleep 1
held "network, library" discnice run --net 5M --net-loopback --strict -- rsync -W rsync://127.0.0.1:8730/shared/file copy
held "network, static" discnice run --net 5M --net-loopback --strict -- busybox wget -q -O copy http://127.0.0.1:8731/file
kill $server $web

# moved PID: MiB/s written by a process and its ended children in four seconds.
moved() {
    written() { awk '/^write_bytes/ { print $2 }' "/proc/$1/io"; }
    before=$(written "$1")
    sleep 4
    awk -v a="$before" -v b="$(written "$1")" 'BEGIN { printf "%.2f", (b - a) / 4 / 1048576 }'
}
between() { awk -v rate="$1" -v low="$2" -v high="$3" 'BEGIN { exit !(rate >= low && rate <= high) }'; }

busybox sh -c 'while :; do busybox dd if=/dev/zero of=file bs=128k count=8 conv=fsync 2>/dev/null; done' &
loop=$!
sleep 1
discnice attach --background --class attached --disk 2M $loop >out 2>&1
judge $? "attach" "$(cat out)"
rate=$(moved $loop)
between "$rate" 1.5 2.5
judge $? "attached" "$rate"
pkill -9 -f 'discnice policyd'
sleep 1
# Whatever was left held goes on, limited again or not.
discnice status >/dev/null
rate=$(moved $loop)
between "$rate" 1.5 1000
judge $? "policyd was killed" "$rate"
discnice detach $loop >out 2>&1
judge $? "detach" "$(cat out)"
rate=$(moved $loop)
between "$rate" 4 1000
judge $? "detached" "$rate"
kill $loop

mkdir files
for number in $(seq 50); do head -c $((number * 300)) /dev/urandom >"files/$number"; done
sums() { (cd files && sha256sum ./* | sort); }
before=$(sums)
discnice refresh files >out 2>&1 </dev/null
status=$?
[ $status -eq 0 ] && [ "$before" = "$(sums)" ]
judge $? "refresh" "status $status"
cat files/7 >/dev/null
ordered=$(discnice order --cached files/* 2>out | wc -l)
[ "$ordered" -eq 50 ]
judge $? "order" "$ordered files"
