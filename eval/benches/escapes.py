#!/usr/bin/env python3
"""Does anything escape? Programs that the library cannot enter or see, at a limit.

Runs each program on cold caches on a loop device of its own (see rates.py), as an unprivileged user:
static (glibc, musl, busybox, Go), page faults (a mapped scanner, ripgrep), io_uring and other fio
engines, cleaned environments, daemons, Java, restic, rclone. (For attaching see attach.py.) For each
and every rate it prints, from the device's counters, the mean rate, that over the time in which it moves data at all (`own`:
without pauses of half a second and more in which nothing is owed), and the highest 5 s window, all as fractions of the limit, the same after subtracting one read-ahead window, what part of the
device's bytes the class was charged, and what part of them `status --json` accounts for: by mechanism, and what the file system
wrote besides for the files that were made, as `discnice calibrate` found before on this disk. Each runs without limits first: that leaves the programs
themselves in the cache (they lie on another disk; what is of DiscNice is read before), and tells what the limited run must print, leave
behind and return, byte for byte.

Needs root (loop device, dropping caches). Programs that are not installed are skipped, visibly.
"""
import argparse
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

import rates
from kept import Kept

HERE = os.path.dirname(os.path.abspath(__file__))
MIB = 1 << 20
# A program that moves nothing for so many seconds computes.
PAUSE = 0.5

COPIER = r"""
#include <fcntl.h>
#include <unistd.h>
int main(int argc, char **argv) {
    static char buffer[65536];
    int in = open(argv[1], O_RDONLY), out = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC, 0644);
    for (ssize_t n; (n = read(in, buffer, sizeof buffer)) > 0;)
        if (write(out, buffer, n) != n)
            return 1;
    return in < 0 || out < 0;
}
"""
SCANNER = r"""
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
int main(int argc, char **argv) {
    struct stat st;
    int fd = open(argv[1], O_RDONLY), random_order = argc > 2;
    fstat(fd, &st);
    volatile char *map = mmap(0, st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    unsigned long sum = 0, pages = st.st_size / 4096, at = 0;
    for (unsigned long n = 0; n < pages; n++) {
        at = random_order ? (at * 6364136223846793005ul + 1442695040888963407ul) : n;
        sum += map[(random_order ? (at >> 20) % pages : at) * 4096];
    }
    return sum == 42;
}
"""
GO = r"""
package main
import ("io"; "os"; "sync")
func main() {
    f, err := os.Open(os.Args[1]); if err != nil { os.Exit(1) }
    st, _ := f.Stat()
    var wait sync.WaitGroup
    part := st.Size() / 100
    for i := int64(0); i < 100; i++ {
        wait.Add(1)
        go func() {
            defer wait.Done()
            if _, err := io.Copy(io.Discard, io.NewSectionReader(f, i*part, part)); err != nil { os.Exit(1) }
        }()
    }
    wait.Wait()
}
"""


def build(disk):
    """Compiles the programs; returns the paths of those that could be."""
    made = {}
    def compile_one(name, source, suffix, command):
        path, to = f"{disk.mount}/{name}{suffix}", f"{disk.mount}/{name}"
        with open(path, "w") as file:
            file.write(source)
        if subprocess.run(command(path, to), shell=True, stderr=subprocess.DEVNULL).returncode == 0:
            os.chmod(to, 0o755)
            made[name] = to
    compile_one("copier-static", COPIER, ".c", lambda p, t: f"cc -O1 -static -o {t} {p}")
    compile_one("copier-musl", COPIER, ".c", lambda p, t: f"musl-gcc -O1 -static -o {t} {p}")
    compile_one("scanner", SCANNER, ".c", lambda p, t: f"cc -O1 -o {t} {p}")
    compile_one("go-reader", GO, ".go", lambda p, t: f"CGO_ENABLED=0 go build -o {t} {p}")
    return made


def programs(disk, rate, made):
    size = int(min(max(rate * 10, 40 * MIB), 500 * MIB)) // MIB
    data, out = f"{disk.mount}/data{size}", f"{disk.mount}/out"
    if not os.path.exists(data):
        rates.sh(f"dd if=/dev/urandom of={data} bs=1M count={size} status=none; chmod 644 {data}")
    archive = f"{disk.mount}/tree.tar"
    if not os.path.exists(archive):
        rates.sh(f"tar -cf {archive} -C {disk.mount} tree; chmod 644 {archive}")
    half = size // 2
    fio = (f"cd {disk.mount} && mkdir -p out && fio --name=x --filename={data} --readonly --rw=read "
           f"--bs=128k --size={size}M --output=/dev/null")
    verify = (f"cd {disk.mount} && mkdir -p out && fio --name=x --directory={out} --rw=write --bs=64k "
              f"--size={half}M --verify=crc32c --output=/dev/null")
    # Its temporary packs are to be on the disk that is measured: it is held for them as well.
    repo = f"export RESTIC_PASSWORD=x RESTIC_CACHE_DIR={out}/cache TMPDIR={out}/tmp; mkdir -p {out}/tmp"
    restic = (f"{repo}; restic init -q -r {out}/r && restic -q -r {out}/r backup {data} && "
              f"restic -q -r {out}/r restore latest --target {out}/restored")
    direct = (f"cd {disk.mount} && mkdir -p out && fio --name=direct --directory={out} --rw=write --direct=1 --bs=128k "
              f"--size={half}M --buffer_pattern=0x5eedbeef --output=/dev/null --iodepth=16")
    wanted = {
        "dd (preloaded)": f"dd if={data} of=/dev/null bs=64k status=none",
        "busybox tar": ["busybox", "tar", "-cf", out, "-C", disk.mount, f"data{size}"],
        "busybox untar": ["busybox", "sh", "-c", f"mkdir {out} && busybox tar -xf {archive} -C {out}"],
        "child: busybox untar": f"mkdir {out} && busybox tar -xf {archive} -C {out}",
        "scanner": f"{made.get('scanner')} {data}",
        "scanner random": f"{made.get('scanner')} {data} random",
        "copier static": [f"{made.get('copier-static')}", data, out],
        "copier musl": [f"{made.get('copier-musl')}", data, out],
        "go 100 goroutines": [f"{made.get('go-reader')}", data],
        "child: busybox tar": f"busybox tar -cf {out} -C {disk.mount} data{size}",
        "child: copier static": f"{made.get('copier-static')} {data} {out}; true",
        "child: go": f"{made.get('go-reader')} {data}; true",
        "ripgrep mmap": f"rg --mmap -c zzzyyyxxx {data} {data} || true",
        "env -i": f"env -i sh -c 'dd if={data} of=/dev/null bs=64k status=none'",
        "unset LD_PRELOAD": f"sh -c 'unset LD_PRELOAD DISCNICE; dd if={data} of=/dev/null bs=64k status=none'",
        "daemon": (f"sh -c 'setsid sh -c \"dd if={data} of={out} bs=64k status=none; touch {out}.done\" &' ; "
                   f"while [ ! -e {out}.done ]; do sleep 0.1; done"),
        "java": f"java -cp {disk.mount} Reader {data}",
        "restic": ["busybox", "sh", "-c", restic],
        "child: restic": restic,
        "rclone sync": f"rclone --config /dev/null sync {disk.mount}/tree {out}",
        **{f"fio {engine}": f"{fio} --ioengine={engine} --iodepth=16"
           for engine in ("psync", "pvsync2", "mmap", "posixaio", "io_uring")},
        "fio libaio direct": f"{fio} --ioengine=libaio --direct=1 --iodepth=16",
        "fio psync direct": f"{fio} --ioengine=psync --direct=1",
        **{f"fio direct write {engine}": f"{direct} --ioengine={engine}"
           for engine in ("psync", "libaio", "io_uring", "posixaio")},
        "fio io_uring async": f"{fio} --ioengine=io_uring --force_async=1 --iodepth=16",
        "fio io_uring sqpoll": f"{fio} --ioengine=io_uring --sqthread_poll=1 --iodepth=16",
        "fio io_uring direct fixed": f"{fio} --ioengine=io_uring --direct=1 --fixedbufs --iodepth=16",
        "fio verify": f"{verify} --ioengine=psync",
    }
    return {name: command for name, command in wanted.items() if "None" not in "".join(command)}


def as_nobody(*words):
    return ["setpriv", "--reuid", str(rates.NOBODY), "--regid", str(rates.NOBODY), "--clear-groups", *words]


class Charges:
    """What `discnice status --json` says of the class of a job."""

    def __init__(self, discnice, name):
        self.discnice, self.name, self.most, self.how, self.besides, self.same = discnice, name, 0, {}, 0, False

    def look(self):
        shown = subprocess.run(as_nobody(self.discnice, "status", "--json"), stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True).stdout
        for one in json.loads(shown or "{}").get("classes", []):
            if one["name"] == self.name:
                self.most, self.how = one["read"] + one["written"], one["by_mechanism"]
                self.besides = sum(fs["file_uncharged_bytes"] for fs in one["prediction"]["file_systems"])


def calibrate(discnice, disk, folder):
    """Has the host profile of the user who measures know what making a file costs on this disk."""
    profile = os.path.join(folder, "profile")
    os.mkdir(profile)
    os.chown(profile, rates.NOBODY, rates.NOBODY)
    os.environ["XDG_CACHE_HOME"] = profile
    subprocess.run(as_nobody(discnice, "calibrate", "--force", "--dir", disk.mount), check=True, cwd="/",
                   stdout=subprocess.DEVNULL)


def ours(discnice):
    """What is of DiscNice."""
    return discnice, os.path.join(os.path.dirname(os.path.realpath(discnice)), "libdiscnice.so")


def load(script):
    """Reads into the cache what programs of this script are loaded from: it lies on another disk, and would be charged to
    the class all the same. An unlimited run brings in only what it touches, `discnice` files as a whole."""
    words = " ".join(script).replace("'", " ").replace('"', " ").split()
    for program in {path for path in map(shutil.which, words) if path and os.path.isfile(path)}:
        told = subprocess.run(["ldd", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
        for path in [program, *(word for word in told.split() if word.startswith("/"))]:
            with open(path, "rb") as file:
                while file.read(MIB):
                    pass


def remount(disk):
    """Empties the caches of this disk alone: its own, and that of its image."""
    rates.sh(f"rm -rf {disk.mount}/out* && umount {disk.mount}")
    with open(disk.image, "rb") as image:
        os.fsync(image.fileno())
        os.posix_fadvise(image.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    rates.sh(f"mount {disk.device} {disk.mount}")
    # Files were found cached after this; why the file system had stayed is not known.
    for root, _, files in os.walk(disk.mount):
        # Links may lead nowhere.
        for path in filter(os.path.isfile, (os.path.join(root, name) for name in files)):
            with open(path, "rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def results(disk):
    """A digest of what a program printed and left behind. What restic encrypts differs each time; what
    it restores does not. So do 12 bytes of each block that fio verifies, which it does itself."""
    digest = hashlib.sha256()
    for root, folders, files in os.walk(disk.mount):
        folders.sort()
        for name in sorted(files):
            path = os.path.join(root, name)
            inside = os.path.relpath(path, disk.mount)
            if inside.startswith("out") and not inside.startswith(("out/r/", "out/cache/", "out/tmp/", "out/x.")):
                digest.update(inside.encode() + b"\0")
                if os.path.islink(path):
                    digest.update(os.readlink(path).encode())
                    continue
                with open(path, "rb") as file:
                    digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def measure(disk, discnice, name, text, command, options, kept):
    title = f"escapes-{os.getpid()}-{abs(hash((name, text))) % 10**6}"
    # A list is executed by `discnice` itself, a line by a shell, whose child it is.
    script = command if isinstance(command, list) else ["sh", "-c", f"exec > {disk.mount}/out.printed; {command}"]
    load([*ours(discnice), *script])
    remount(disk)
    _, _, _, status = rates.run(script, disk, 200)
    unlimited = status, results(disk)
    kept.keep()
    remount(disk)
    charges = Charges(discnice, title)
    limited = [discnice, "run", "--class", title, "--disk", f"{text}M", *options, "--", *script]
    elapsed, samples, _, status = rates.run(limited, disk, 200)
    charges.same = (status, results(disk)) == unlimited
    charges.look()
    subprocess.run(as_nobody(discnice, "class", "rm", "--force", title), stderr=subprocess.DEVNULL)
    return elapsed, samples, status, charges


def busy(samples, elapsed, rate):
    """Seconds in which the program moved data or owed for it, and pauses that were short."""
    moved = idle = paid = last = 0
    for now, _, bytes in [*samples, (elapsed, 0, float("inf"))]:
        if bytes > moved:
            pause = now - max(last, paid)
            idle += pause if pause > PAUSE else 0
            paid, last = max(paid, now) + (bytes - moved) / rate, now
            moved = bytes
    return elapsed - idle


def row(name, text, window, elapsed, samples, status, charges):
    rate, total = float(text) * MIB, samples[-1][2]
    if total < MIB // 4:
        print(f"{name:<26} {text + 'M':>5} {elapsed:7.2f}  nothing reached the device  exit {status}")
        return
    span = max(min(elapsed, 5.0), 0.5)
    most = rates.highest(samples, 2, span)
    accounted = (sum(charges.how.values()) + charges.besides) / total
    parts = [*sorted(charges.how.items()), ("files made", charges.besides)]
    how = ", ".join(f"{name} {bytes / total:.3f}" for name, bytes in parts if bytes)
    print(f"{name:<26} {text + 'M':>5} {elapsed:7.2f} {total / elapsed / rate:6.3f} {total / busy(samples, elapsed, rate) / rate:6.3f} "
          f"{most / rate / span:6.3f} {max(most - window, 0) / rate / span:7.3f} "
          f"{charges.most / total:8.3f} {accounted:7.3f}  {'same' if charges.same else 'OTHER'}  {how}{f'  exit {status}' if status else ''}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--discnice", type=os.path.abspath, default=os.path.join(HERE, "../../target/release/discnice"))
    parser.add_argument("--rates", default="5,50", help="MiB/s, comma-separated")
    parser.add_argument("--programs", default="", help="parts of names, comma-separated; all without")
    parser.add_argument("--mechanism", default="auto")
    parser.add_argument("--read-ahead", type=int, default=8192, help="KiB")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("escapes.py: needs root for a loop device; run it with sudo")
    # The loop device is given back then, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    folder = tempfile.mkdtemp(prefix="discnice-escapes-", dir=os.environ.get("TMPDIR"))
    os.chmod(folder, 0o755)
    disk = rates.Disk(folder, "ext4", 8 << 30, arguments.read_ahead)
    try:
        made = build(disk)
        with open(f"{disk.mount}/Reader.java", "w") as file:
            file.write("class Reader { public static void main(String[] a) throws Exception { var i = "
                       "new java.io.FileInputStream(a[0]); var b = new byte[65536]; "
                       "while (i.read(b) > 0); } }\n")
        # Compiled here: that is seconds of processor time in which nothing is read.
        subprocess.run(["javac", "-d", disk.mount, f"{disk.mount}/Reader.java"], stderr=subprocess.DEVNULL)
        os.makedirs(f"{disk.mount}/tree")
        rates.sh(f"cp -r /usr/include {disk.mount}/tree/; true", stderr=subprocess.DEVNULL)
        rates.sh(f"head -c 40M /dev/urandom > {disk.mount}/tree/large")
        print(f"{'program':<26} {'limit':>5} {'time':>7} {'mean':>6} {'own':>6} {'5 s':>6} {'-window':>7} "
              f"{'charged':>8} {'status':>7}  results, mechanisms")
        # All files are made here: what is closed beside a limited program's files is written back with them.
        by_rate = {text: programs(disk, float(text) * MIB, made) for text in arguments.rates.split(",")}
        calibrate(arguments.discnice, disk, folder)
        kept = Kept(*ours(arguments.discnice))
        for text, commands in by_rate.items():
            for name, command in commands.items():
                if any(part in name for part in arguments.programs.split(",")):
                    result = measure(disk, arguments.discnice, name, text, command,
                                     ["--mechanism", arguments.mechanism], kept)
                    row(name, text, arguments.read_ahead << 10, *result)
    finally:
        disk.close()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
