#!/usr/bin/env python3
"""Does `discnice run --estimator predict` know what programs do to the disk?

Runs the six micro-benchmarks of DiscNice, table 4, at the paper's sizes, and programs of table 7 and
others, on cold caches, on a loop device of its own, as an unprivileged user, and compares three
sums of bytes read and written:
- predicted: what discnice predicted, less what was deleted before it was written;
- account: what the kernel charged to the processes (/proc/PID/io of a parent in the class that waited for
  them), less cancelled writes;
- device: what the loop device did until everything was synced: journal and metadata included;
  compared with what was predicted of the file system under test alone, and what the files that were
  made cost beside that (`discnice calibrate`). With `--estimator auto`: with what was charged there.

Of programs that should hardly touch the disk (region-write, create-delete) errors are a part of what they ask for.

File systems: ext4, xfs, btrfs; overlay (over ext4, all files in the lower layer); fuse (bindfs over
ext4, where the account says nothing). `--foreign` gives all files to root.

Needs root (loop device, dropping caches). Everything is unmounted and detached on every way out.
"""
import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kept import Kept  # noqa: E402
from rates import HERE, NOBODY, Disk, sh  # noqa: E402

MEGABYTE = 1_000_000
# Runs a command and tells through a pipe what the kernel charged to it and its children. What discnice
# itself did before it executed this is not the program's.
ACCOUNT = """
import os, subprocess, sys
def total():
    fields = dict(line.split(": ") for line in open("/proc/self/io").read().splitlines())
    return int(fields["read_bytes"]) + int(fields["write_bytes"]) - int(fields["cancelled_write_bytes"])
before = total()
subprocess.run(sys.argv[2:])
os.write(int(sys.argv[1]), str(total() - before).encode())
"""
PYTHON = "/usr/bin/python3 -SEc"
# What compilers write for each other goes to memory: of what `auto` charges only a sixteenth of the files
# is told by file system.
ON_NO_DISK = "export TMPDIR=/dev/shm; "
HEADERS = ("stdio", "stdlib", "string", "math", "errno", "signal", "time", "unistd", "pthread", "netdb", "sys/socket", "sys/stat")


class Place:
    """A folder on the file system under test; `disk` is what lies below."""

    def __init__(self, folder, fs, size):
        self.fs = fs
        base = {"overlay": "ext4", "fuse": "ext4"}.get(fs, fs)
        self.disk = Disk(folder, base, size, 8192)
        self.below, self.folder, self.mounts = self.disk.mount, self.disk.mount, []
        try:
            if fs == "overlay":
                for name in ("lower", "upper", "work"):
                    self.make(os.path.join(self.disk.mount, name))
                self.below = os.path.join(self.disk.mount, "lower")
                self.folder = self.make(os.path.join(folder, "merged"))
            if fs == "fuse":
                self.below = self.make(os.path.join(self.disk.mount, "below"))
                self.folder = self.make(os.path.join(folder, "fuse"))
            self.mount()
        except BaseException:
            self.close()
            raise

    @staticmethod
    def make(path):
        os.makedirs(path)
        os.chmod(path, 0o777)
        return path

    def mount(self):
        if self.fs == "overlay":
            base = self.disk.mount
            sh(f"mount -t overlay overlay -o lowerdir={base}/lower,upperdir={base}/upper,"
               f"workdir={base}/work {self.folder}")
        if self.fs == "fuse":
            sh(f"bindfs {self.below} {self.folder}")

    def cold(self):
        """Empties the caches of this file system only: others may be measuring."""
        if self.fs in ("overlay", "fuse"):
            sh(f"umount {self.folder}")
        # Not of all file systems: who is measured beside would have a transaction more.
        sh(f"sync -f {self.disk.mount}")
        sh(f"umount {self.disk.mount}")
        wait_until_unused(self.disk.device)
        sh(f"mount {self.disk.device} {self.disk.mount}")
        self.commit()
        self.mount()

    def commit(self):
        """Leaves a fresh mount's first transaction behind: the journal's superblock and btrfs's trees are
        written again then, for which no program is to blame."""
        with open(f"{self.disk.mount}/first", "wb") as file:
            file.write(b"a" * 4096)
        self.write()

    def write(self):
        """Has everything written, as the kernel itself does it 30 s later. syncfs(2) writes the trees of btrfs twice: once
        as pages, and once more as the commit changes them."""
        own = {"btrfs": "btrfs filesystem sync"}.get(self.fs, "sync -f")
        sh(f"{own} {self.disk.mount}", stdout=subprocess.DEVNULL)

    def close(self):
        if self.folder != self.disk.mount:
            subprocess.run(["umount", self.folder], stderr=subprocess.DEVNULL)
        self.disk.close()


def wait_until_unused(device):
    """Another mount namespace, made meanwhile, keeps what is unmounted here, and its cache."""
    for _ in range(600):
        try:
            return os.close(os.open(device, os.O_RDONLY | os.O_EXCL))
        except OSError:
            time.sleep(0.1)
    sys.exit(f"estimator.py: somebody else has {device} mounted")


def write_file(path, size, owner):
    sh(f"head -c {size} /dev/urandom > {path}; chown {owner}:{owner} {path}; chmod 644 {path}")


def write_project(project, scale):
    """Sources of 8 MB, of which make writes 40 MB: objects with what a debugger wants to know, an archive of each folder,
    and a program (as Apache 2.0.52, DiscNice, 6.3)."""
    folders, each = max(1, round(20 * scale)), 10
    headers = "".join(f"#include <{name}.h>\n" for name in HEADERS)
    for folder in range(folders):
        os.makedirs(f"{project}/{folder}")
        for part in range(each):
            number = folder * each + part
            numbers = ",".join(str((number + 1) * n % 9973) for n in range(8_000))
            with open(f"{project}/{folder}/part{part}.c", "w") as file:
                file.write(f"{headers}int table{number}[] = {{{numbers}}};\nint of{number}(int n) {{ return table{number}[n]; }}\n")
    with open(f"{project}/main.c", "w") as file:
        called = [f"of{number}" for number in range(folders * each)]
        file.write("".join(f"int {name}(int);\n" for name in called))
        file.write(f"int main(void) {{ return {'+'.join(f'{name}(0)' for name in called)}; }}\n")
    archives = [f"{folder}/all.a" for folder in range(folders)]
    with open(f"{project}/Makefile", "w") as file:
        file.write(f"program: main.o {' '.join(archives)}\n\tgcc -o $@ $^\n%.o: %.c\n\tgcc -g -c -o $@ $<\n")
        for folder, archive in enumerate(archives):
            objects = " ".join(f"{folder}/part{part}.o" for part in range(each))
            file.write(f"{archive}: {objects}\n\tar rcs $@ $^\n")


def prepare(place, scale, owner):
    """Makes the files that the programs below read."""
    data = f"{place.below}/data"
    write_file(data, int(600 * MEGABYTE * scale), owner)
    tree = f"{place.below}/tree"
    os.makedirs(tree)
    sh(f"cp -r /usr/include /usr/share/perl /usr/lib/python3* {tree}/ 2>/dev/null; "
       f"cp -r /usr/share/doc {tree}/ 2>/dev/null; find {tree} -type l -delete; true")
    sh(f"tar -cf {place.below}/archive.tar -C {tree} .")
    project = f"{place.below}/project"
    write_project(project, scale)
    sh(f"chown -R {owner}:{owner} {tree} {place.below}/archive.tar; "
       f"chown -R {NOBODY}:{NOBODY} {project}")
    # Python's own modules, as sources and compiled.
    modules = os.path.dirname(os.__file__)
    sh(f"cp -rL {modules} {place.below}/modules; chown -R {owner}:{owner} {place.below}/modules")
    sh(f"cp -r {tree}/include {place.below}/repository && cd {place.below}/repository && git init -q . && git add . && "
       f"git -c user.name=n -c user.email=e commit -qm all && chown -R {NOBODY}:{NOBODY} .")
    if shutil.which("sqlite3"):
        sh(f"sqlite3 {place.below}/db \"create table t(x); with recursive c(n) as (select 1 union all "
           f"select n+1 from c where n < {int(20000 * scale) + 100}) insert into t select "
           f"randomblob(5000) from c;\"; chown {owner}:{owner} {place.below}/db")


def programs(folder, scale):
    data, out = f"{folder}/data", f"{folder}/out"
    size = int(600 * MEGABYTE * scale)

    def python(text):
        return f"{PYTHON} '{text}'"

    fd = f'import os,random,mmap; fd=os.open("{data}",os.O_RDONLY)'
    times = int(10_000 * scale)
    return {
        # Table 4.
        "sequential": f"dd if={data} of=/dev/null bs=64k status=none",
        "random": python(f"{fd}\nrandom.seed(1)\nfor _ in range({size} // 65536):\n"
                         f" os.lseek(fd,random.randrange({size} // 65536)*65536,0); os.read(fd,65536)"),
        "stride": python(f"{fd}\nfor at in range(0,{size},12288): os.lseek(fd,at,0); os.read(fd,1)"),
        "create": f"dd if=/dev/zero of={out} bs=64k count={int(400 * MEGABYTE * scale) >> 16} status=none",
        "region-write": python(f'import os\nfd=os.open("{out}",os.O_WRONLY|os.O_CREAT)\n'
                               f'for _ in range({times}): os.lseek(fd,0,0); os.write(fd,b"a"*10240)'),
        "create-delete": python(f'import os\nfor _ in range({times}):\n fd=os.open("{out}",os.O_WRONLY|'
                                f'os.O_CREAT|os.O_TRUNC)\n os.write(fd,b"a"*10240); os.close(fd)\n '
                                f'os.unlink("{out}")'),
        # Table 7 and others.
        "tar": f"sh -c 'mkdir {out} && tar -xf {folder}/archive.tar -C {out}'",
        "make": f"make -s -B -C {folder}/project",
        "grep": f"sh -c 'grep -rac epoch {folder}/tree > /dev/null; true'",
        "git": f"git clone -q --no-local {folder}/repository {out}",
        "python": python(f'import sys; sys.dont_write_bytecode=True; sys.path.insert(0,"{folder}/modules")\n'
                         f'import email.mime.text, json.tool, xml.dom.minidom, unittest, http.server, asyncio'),
        "rsync": f"rsync -a {folder}/tree/ {out}",
        "sqlite3": f"sqlite3 {folder}/db 'select sum(length(x)) from t'",
        "cp": f"cp {data} {out}",
        "find": f"find {folder}/tree -size +1M",
        "mmap": python(f"{fd}\nm=mmap.mmap(fd,0,prot=mmap.PROT_READ)\n"
                       f"print(sum(m[at] for at in range(0,len(m),4096)))"),
        "mmap-random": python(f"{fd}\nrandom.seed(1); m=mmap.mmap(fd,0,prot=mmap.PROT_READ)\n"
                              f"print(sum(m[random.randrange(len(m))] for _ in range(10)))"),
    }


def run(arguments, place, command):
    sh(f"rm -rf {place.below}/out {place.folder}/out {place.below}/project/program; "
       f"find {place.below}/project -name '*.[oa]' -delete")
    place.cold()
    name = f"estimator-{os.getpid()}"
    before = place.disk.counters()
    as_nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": [], "cwd": "/",
                 "env": dict(os.environ, HOME=arguments.scratch)}
    told, tell = os.pipe()
    subprocess.run([arguments.discnice, "run", "--class", name, "--disk", arguments.disk, "--estimator",
                    arguments.estimator, "--", *PYTHON.split(), ACCOUNT, str(tell), "sh", "-c", ON_NO_DISK + command],
                   stdout=subprocess.DEVNULL, pass_fds=[tell], **as_nobody)
    os.close(tell)
    with open(told) as pipe:
        account = int(pipe.read())
    shown = subprocess.run([arguments.discnice, "class", "show", name, "--json"],
                           capture_output=True, text=True, **as_nobody).stdout
    subprocess.run([arguments.discnice, "class", "rm", "--force", name], **as_nobody)
    place.write()
    after = place.disk.counters()
    shown = json.loads(shown)
    shown = (shown["classes"] if isinstance(shown, dict) else shown)[0]
    moved = shown["read"] + shown["written"]
    predicted = shown["prediction"]["predicted_bytes"]
    # In auto what counts is what was charged.
    if arguments.estimator != "predict":
        predicted = moved
    here = os.stat(place.folder).st_dev
    # What belongs to no file system by name counts as the tested one's.
    mine = (None, f"{os.major(here)}:{os.minor(here)}")
    tested = [fs for fs in shown["prediction"]["file_systems"] if fs["device"] in mine]
    others = [fs for fs in shown["prediction"]["file_systems"] if fs["device"] not in mine]
    if arguments.estimator == "predict":
        here = sum(fs["file_uncharged_bytes"] + calls(fs, "predicted_bytes") - calls(fs, "credited_bytes")
                   for fs in tested)
    else:
        here = (moved - sum(calls(fs, "account_bytes") for fs in others)
                + sum(fs["file_uncharged_bytes"] for fs in tested))
    read, written = after[0] - before[0], after[1] - before[1]
    return {"predicted": predicted, "tested": here, "account": account, "device": read + written,
            "device_read": read, "device_written": written, "prediction": shown["prediction"]}


def calls(fs, field):
    """The sum of what is told of each kind of call on a file system."""
    return sum(call[field] for call in fs["calls"])


def calibrate(arguments, place):
    """Has the host profile know what making a file costs here."""
    subprocess.run([arguments.discnice, "calibrate", "--force", "--dir", place.folder], check=True,
                   stdout=subprocess.DEVNULL, user=NOBODY, group=NOBODY, extra_groups=[], cwd="/",
                   env=dict(os.environ, HOME=arguments.scratch))


def error(predicted, truth, asked):
    return 100.0 * (predicted - truth) / max(truth, asked, 4096)


def asked(program, scale):
    """File I/O in bytes of those that should hardly touch the disk: their errors are a part of that. Else
    inodes and the journal, tens of KB in every program's count, would be all that is compared."""
    return int(10_000 * scale) * 10_240 if program in ("region-write", "create-delete") else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--discnice", default=os.path.join(HERE, "../../target/release/discnice"))
    parser.add_argument("--fs", default="ext4", help="comma-separated")
    parser.add_argument("--programs", default="", help="comma-separated; all without")
    parser.add_argument("--estimator", default="predict")
    parser.add_argument("--disk", default="unlimited", help="the limit")
    parser.add_argument("--scale", type=float, default=1.0, help="1 is the paper's size")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--foreign", action="store_true", help="files of root, read as nobody")
    parser.add_argument("--calibrate", action="store_true", help="calibrate each file system before")
    parser.add_argument("--json", help="write all results here")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("estimator.py: needs root for a loop device; run it with sudo")
    # So that what is mounted is unmounted then as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    record, kept = [], Kept()
    print(f"{'fs':<8} {'program':<14} {'predicted':>13} {'account':>13} {'device':>13}  "
          f"{'/account':>9} {'/device':>9}")
    for fs in arguments.fs.split(","):
        folder = tempfile.mkdtemp(prefix="discnice-estimator-")
        os.chmod(folder, 0o755)
        arguments.scratch = os.path.join(folder, "home")
        os.makedirs(arguments.scratch)
        os.chmod(arguments.scratch, 0o777)
        place = Place(folder, fs, 6 << 30)
        try:
            prepare(place, arguments.scale, 0 if arguments.foreign else NOBODY)
            wanted = programs(place.folder, arguments.scale)
            if arguments.calibrate:
                calibrate(arguments, place)
            for name in [n for n in arguments.programs.split(",") if n] or list(wanted):
                run(arguments, place, wanted[name])  # Loads the programs from wherever they are.
                kept.keep()
                results = [run(arguments, place, wanted[name]) for _ in range(arguments.runs)]
                record.append({"fs": fs, "program": name, "results": results})
                row(fs, name, results, asked(name, arguments.scale))
        finally:
            place.close()
            shutil.rmtree(folder)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(record, file)


def row(fs, name, results, asked):
    def median(of):
        return statistics.median(of(result) for result in results)
    account = median(lambda r: error(r["predicted"], r["account"], asked))
    device = median(lambda r: error(r["tested"], r["device"], asked))
    print(f"{fs:<8} {name:<14} {median(lambda r: r['predicted']):>13.0f} "
          f"{median(lambda r: r['account']):>13.0f} {median(lambda r: r['device']):>13.0f}  "
          f"{account:>8.2f}% {device:>8.2f}%", flush=True)


if __name__ == "__main__":
    main()
