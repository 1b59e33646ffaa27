#!/usr/bin/env python3
"""Does `discnice run --disk R` hold real programs to R, and do they get R?

Runs each program on cold caches, on a loop device of its own, as an unprivileged user, and
samples every 20 ms
- the account: /proc/PID/io of all living processes of the tree (the kernel adds a dead child's to
  its parent's when that one waits for it);
- the device: /sys/block/loopN/stat.

Prints for each program and rate: the mean rate of the run and the highest 5 s and 100 ms window,
all as fractions of the limit (for the 100 ms window: of one second's worth); and `own`, the share
of the run that the bytes at the limit and the program's processor time make together. A program
that computes without reading (sort, when it has read all) cannot have a mean of 1, but this.

Needs root (loop device, dropping caches). Everything is unmounted and detached on every way out.
"""
import argparse
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
# Another one for who measures beside others: a user has one daemon.
NOBODY = int(os.environ.get("DISCNICE_BENCH_UID", "65534"))
MIB = 1 << 20


def sh(command, **options):
    return subprocess.run(command, shell=True, check=True, **options)


class Disk:
    """A loop device with a file system on it, whose counters see nobody else."""

    def __init__(self, folder, fs, size, read_ahead):
        self.image = os.path.join(folder, "disk.img")
        self.mount = os.path.join(folder, "mnt")
        os.makedirs(self.mount)
        with open(self.image, "wb") as image:
            image.truncate(size)
        sh(f"mkfs.{fs} -q {self.image}")
        self.device = subprocess.check_output(
            ["losetup", "--find", "--show", self.image], text=True).strip()
        self.name = os.path.basename(self.device)
        try:
            with open(f"/sys/block/{self.name}/queue/read_ahead_kb", "w") as file:
                file.write(str(read_ahead))
            sh(f"mount {self.device} {self.mount}")
            os.chmod(self.mount, 0o777)
        except BaseException:
            self.close()
            raise

    def counters(self):
        return device(f"/sys/block/{self.name}")

    def cold(self, keep=()):
        """Drops all caches, but reads the files in `keep` again."""
        sh("sync")
        with open("/proc/sys/vm/drop_caches", "w") as file:
            file.write("3")
        for path in keep:
            with open(path, "rb") as file:
                while file.read(MIB):
                    pass
        time.sleep(0.2)

    def close(self):
        subprocess.run(["umount", self.mount], stderr=subprocess.DEVNULL)
        subprocess.run(["losetup", "--detach", self.device], stderr=subprocess.DEVNULL)


def tree(root):
    """Process ids of the tree below and including `root`."""
    children = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat") as file:
                    parent = int(file.read().rsplit(")", 1)[1].split()[1])
                children.setdefault(parent, []).append(int(entry))
            except OSError:
                pass
    found, todo = [], [root]
    while todo:
        pid = todo.pop()
        found.append(pid)
        todo += children.get(pid, [])
    return found


def counters(pid):
    """What a process has read, dirtied (or written directly), and of that deleted unwritten, in bytes."""
    try:
        with open(f"/proc/{pid}/io") as file:
            fields = dict(line.split(": ") for line in file.read().splitlines())
    except OSError:
        return 0, 0, 0
    return tuple(int(fields[f"{name}_bytes"]) for name in ("read", "write", "cancelled_write"))


def account(pid):
    read, written, cancelled = counters(pid)
    return read + written - cancelled


def device(folder):
    """What was read from and written to a block device, in bytes; the folder is its own in sysfs(5)."""
    with open(f"{folder}/stat") as file:
        fields = file.read().split()
    return int(fields[2]) * 512, int(fields[6]) * 512


def processor_time():
    """Of all that ran below us and has ended, in seconds."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run(command, disk, timeout):
    """Runs a command (a list: `discnice run`, whose account no shell may share; else a line for the
    shell); returns (elapsed, samples of (time, account, device), processor time, exit status)."""
    os.sync()
    before = processor_time()
    start_device = sum(disk.counters())
    start = time.monotonic()
    process = subprocess.Popen(command, shell=isinstance(command, str), cwd=disk.mount, user=NOBODY, group=NOBODY,
                               extra_groups=[], stdout=subprocess.DEVNULL,
                               start_new_session=True)
    samples, most = [], 0
    try:
        while process.poll() is None:
            most = max(most, sum(map(account, tree(process.pid))))
            now = time.monotonic() - start
            samples.append((now, most, sum(disk.counters()) - start_device))
            if now > timeout:
                break
            time.sleep(0.02)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    elapsed = time.monotonic() - start
    samples.append((elapsed, most, sum(disk.counters()) - start_device))
    # For the mean; when the kernel would have written that nobody knows.
    os.sync()
    samples.append((elapsed, most, sum(disk.counters()) - start_device))
    return elapsed, samples, processor_time() - before, process.returncode


def highest(samples, column, width):
    """The most bytes in any window of `width` seconds that begins at a sample."""
    best, end = 0, 0
    for begin in range(len(samples)):
        while end + 1 < len(samples) and samples[end + 1][0] - samples[begin][0] <= width:
            end += 1
        best = max(best, samples[end][column] - samples[begin][column])
    return best


def programs(disk, rate):
    """Command lines, each moving about ten seconds' worth of `rate` where it can."""
    size = int(min(max(rate * 10, 24 * MIB), 800 * MIB)) // MIB
    data = f"{disk.mount}/data{size}"
    if not os.path.exists(data):
        sh(f"dd if=/dev/urandom of={data} bs=1M count={size} status=none; chmod 644 {data}")
    lines = f"{disk.mount}/lines{size}"
    if not os.path.exists(lines):
        sh(f"base64 -w 76 {data} > {lines}")
    tree_size = f"{disk.mount}/tree"
    if not os.path.exists(tree_size):
        os.makedirs(tree_size)
        sh(f"cp -r /usr/include /usr/share/perl {tree_size}/; cp -r /usr/lib/python3* {tree_size}/; true",
           stderr=subprocess.DEVNULL)
        sh(f"cp -r /usr/share/doc {tree_size}/ || true", stderr=subprocess.DEVNULL)
        sh(f"chown -R {NOBODY}:{NOBODY} {tree_size}")
    database = f"{disk.mount}/db{size}"
    if not os.path.exists(database) and shutil.which("sqlite3"):
        sh(f"sqlite3 {database} \"create table t(x); with recursive c(n) as (select 1 union all "
           f"select n+1 from c where n < {size * 200}) insert into t select randomblob(5000) from c;\"")
        os.chmod(database, 0o644)
    repo = f"{disk.mount}/repo{size}"
    if not os.path.exists(repo):
        sh(f"git init -q {repo} && cp {data} {repo}/blob && cd {repo} && git -c user.name=a "
           f"-c user.email=a@b add . && git -c user.name=a -c user.email=a@b commit -qm x && "
           f"chown -R {NOBODY}:{NOBODY} {repo}")
    project = f"{disk.mount}/project"
    if not os.path.exists(project):
        os.makedirs(project)
        includes = "".join(f"#include <{name}>\n" for name in ("stdio.h", "stdlib.h", "math.h"))
        for number in range(60):
            with open(f"{project}/part{number}.c", "w") as file:
                numbers = ",".join(str((number + 1) * n % 9973) for n in range(100_000))
                file.write(f"{includes}int table{number}[] = {{{numbers}}};\n")
        objects = " ".join(f"part{number}.o" for number in range(60))
        with open(f"{project}/Makefile", "w") as file:
            file.write(f"all: {objects}\n%.o: %.c\n\tgcc -c -o $@ $<\nclean:\n\trm -f *.o\n")
        sh(f"chown -R {NOBODY}:{NOBODY} {project}")
    reader = f"{disk.mount}/Reader.java"
    if not os.path.exists(reader):
        with open(reader, "w") as file:
            file.write("class Reader { public static void main(String[] a) throws Exception { var i = "
                       "new java.io.FileInputStream(a[0]); var b = new byte[65536]; "
                       "while (i.read(b) > 0); } }\n")
    out = f"{disk.mount}/out"
    return {
        "dd": f"dd if={data} of=/dev/null bs=64k status=none",
        "dd-1M": f"dd if={data} of=/dev/null bs=1M status=none",
        "dd-write": f"dd if=/dev/zero of={out} bs=64k count={size * 16} status=none",
        "dd-write-1M": f"dd if=/dev/zero of={out} bs=1M count={size} status=none",
        "dd-direct": f"dd if={data} of=/dev/null bs=256k iflag=direct status=none",
        "cp": f"cp {data} {out}",
        "cat": f"cat {data}",
        "tar": f"tar -cf - {tree_size} | cat > /dev/null",
        "tar-x": f"tar -cf {out}.tar -C {tree_size} . && mkdir {out} && tar -xf {out}.tar -C {out}",
        "rsync": f"rsync -a {tree_size} {out}",
        "grep": f"grep -r zzzyyyxxx {tree_size}",
        "sort": f"sort -S 50% {lines}",
        "git": f"git clone -q --no-hardlinks {repo} {out}",
        "python3": f"python3 -c \"import sys; f = open('{data}', 'rb')\nwhile f.read(65536): pass\"",
        "python3-lines": f"python3 -c \"print(sum(len(l) for l in open('{lines}')))\"",
        "sqlite3": f"sqlite3 {database} 'select sum(length(x)) from t'",
        "curl": f"curl -s -o /dev/null file://{data}",
        "perl": f"perl -ne '$n++; END {{ print $n }}' {lines}",
        "md5sum": f"md5sum {data}",
        "java": f"java {reader} {data}",
        "make-j8": f"make -s -C {project} clean && make -s -j8 -C {project} all",
        "gcc": f"sh -c 'for i in 1 2 3 4 5 6; do echo \"#include <stdio.h>\n#include <stdlib.h>\" | "
               f"gcc -isystem {tree_size}/include -x c -c -o {out}$i.o -; done'",
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--discnice", default=os.path.join(HERE, "../../target/release/discnice"))
    parser.add_argument("--rates", default="2,20,100", help="MiB/s, comma-separated")
    parser.add_argument("--programs", default="", help="comma-separated; all without")
    parser.add_argument("--fs", default="ext4")
    parser.add_argument("--read-ahead", type=int, default=8192, help="KiB")
    parser.add_argument("--json", help="write all samples here")
    parser.add_argument("--unlimited", action="store_true", help="also run without DiscNice")
    parser.add_argument("--own-cold", action="store_true",
                        help="also leave DiscNice's own program out of the cache: it is read before "
                             "it can know the limit, and charged afterwards")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("rates.py: needs root for a loop device; run it with sudo")
    beside = os.path.join(os.path.dirname(os.path.realpath(arguments.discnice)), "libdiscnice.so")
    own = [] if arguments.own_cold else [arguments.discnice, beside]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("rates.py: terminated"))
    folder = tempfile.mkdtemp(prefix="discnice-rates-")
    os.chmod(folder, 0o755)
    disk = Disk(folder, arguments.fs, 8 << 30, arguments.read_ahead)
    record = []
    try:
        print(f"{'program':<14} {'limit':>9} {'time':>7} {'free':>6} {'mean':>6} {'5 s':>6} "
              f"{'100 ms':>6} {'own':>6}   device: {'mean':>6} {'5 s':>6} {'100 ms':>6}")
        for text in arguments.rates.split(","):
            rate = float(text) * MIB
            wanted = programs(disk, rate)
            names = [n for n in arguments.programs.split(",") if n] or list(wanted)
            for name in names:
                free, unlimited = 0, []
                if arguments.unlimited:
                    free, unlimited, *_ = measure(disk, wanted[name], None, own)
                limited = [os.path.abspath(arguments.discnice), "run", "--disk", f"{text}M", "--",
                           "sh", "-c", wanted[name]]
                *measured, status = measure(disk, limited, 240, own)
                row(name, text, rate, free, *measured, status)
                record.append({"program": name, "rate": rate, "samples": measured[1],
                               "unlimited": unlimited})
    finally:
        disk.close()
        shutil.rmtree(folder)
        if arguments.json:
            with open(arguments.json, "w") as file:
                json.dump(record, file)


def measure(disk, command, timeout, own):
    sh(f"rm -rf {disk.mount}/out*")
    disk.cold(own)
    return run(command, disk, timeout or 600)


def row(name, text, rate, free, elapsed, samples, processor, status):
    def figures(column):
        total = samples[-1][column]
        if total < MIB // 4:
            return f"{'-':>6} {'-':>6} {'-':>6}"
        span = max(min(elapsed, 5.0), 0.5)
        return (f"{total / elapsed / rate:6.3f} {highest(samples, column, span) / rate / span:6.3f} "
                f"{highest(samples, column, 0.1) / rate:6.2f}")
    note = f"  exit {status}" if status else ""
    own = (samples[-1][1] / rate + processor) / elapsed
    print(f"{name:<14} {text + 'M':>9} {elapsed:7.2f} {free:6.2f} {figures(1)} {own:6.3f}           "
          f"{figures(2)}{note}", flush=True)


if __name__ == "__main__":
    main()
