#!/bin/sh
# Does memory.low of a control group protect a guest's pages, where only the group itself is the user's? (ADR 40)
#
#     eval/benches/memory_low.sh KERNEL
#
# Boots the kernel (a bzImage with cgroups of version 2, NVMe and a serial console built in, as /boot/vmlinuz-* of Debian's
# linux-image-cloud-amd64) in a virtual machine of 400 MiB: qemu-system-x86_64, a static busybox and cpio are needed, no
# rights, and three minutes. In it a guest reads 100 MiB of a disk, then a host 480 MiB. Each line says how much of the
# guest's file pages is left.
set -eu
kernel=${1:?give the path of a kernel}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/root/bin" "$folder/root/proc" "$folder/root/sys" "$folder/root/dev" "$folder/root/groups"
cp "$(command -v busybox)" "$folder/root/bin/busybox"
cat > "$folder/root/init" <<'INIT'
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
# As systemd(1) mounts it.
mount -t cgroup2 -o memory_recursiveprot none /groups
cd /groups
echo +memory > cgroup.subtree_control
mkdir -p user/own/guest user/own/host system
echo +memory > user/cgroup.subtree_control
echo +memory > user/own/cgroup.subtree_control
# The last one that closes a disk drops its pages.
exec 3< /dev/nvme0n1
read_in() { # GROUP FROM COUNT
  sh -c "echo \$\$ > /groups/$1/cgroup.procs; exec dd if=/dev/nvme0n1 of=/dev/null bs=1M skip=$2 count=$3 2>&-"
}
pages() {
  awk '$1 == "file" { print int($2 / 1048576) }' user/own/guest/memory.stat
}
# low of the guest, low of the groups above, most of the user's group, where the host is
try() {
  echo 3 > /proc/sys/vm/drop_caches
  echo "$1" > user/own/guest/memory.low
  echo "$2" > user/memory.low
  echo "$2" > user/own/memory.low
  echo "$3" > user/own/memory.max
  read_in user/own/guest 0 100
  before=$(pages)
  read_in "$4" 100 480
  echo "RESULT low $1, above it $2, memory.max $3, host in $4: $(pages) of $before MiB"
}
try 0 0 max system
try 120M 0 max system
try 120M 0 max user/own/host
try 120M 120M max system
try 0 120M max system
try 0 0 200M user/own/host
try 120M 0 200M user/own/host
poweroff -f
INIT
chmod +x "$folder/root/init"
(cd "$folder/root" && find . | cpio -o -H newc --quiet | gzip) > "$folder/init.gz"
truncate -s 640M "$folder/disk"
${QEMU:-qemu-system-x86_64} -m 400 -nographic -no-reboot -net none -kernel "$kernel" -initrd "$folder/init.gz" \
  -append "console=ttyS0 panic=-1" -drive "file=$folder/disk,format=raw,if=none,id=disk" \
  -device nvme,drive=disk,serial=1 < /dev/null | tr -d '\r' | sed -n 's/^RESULT //p'
