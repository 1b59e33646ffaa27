#!/usr/bin/env python3
"""What a foreground feels beside background work, with nothing, ionice and `discnice run --`.

    python3 eval/benches/beside.py --folder DIR [--rounds N] [--jobs restic,go,...] [--treatments nothing,...] [--foregrounds seq,reads,sqlite] [--seconds S]

Jobs that read a file of DIR, past the cache or dropped from it, again and again: restic, go (a static Go program), static (a static C program), mapped (page
faults), rsync, uring (fio). Jobs that write: write (dd over the same blocks), and to a new file each time anew (dd), go_anew, static_anew, child_anew (the
same static program below a shell), mapped_anew (page faults), untar (2,000 small files), untar_static (the same by a static busybox). Jobs on a tree of
12,000 files in 120 directories, past the cache: find (inodes), grep, tar (to a pipe), borg (to memory), rclone and cp (to the same disk), links (makes
and removes names only), gc (of git, with 4,000 objects), make (-j8, 400 sources), sort (300 MB of lines, with its own files beside them). DIR lies on the disk that is judged: `discnice-eval disk up` makes a
hard disk. Foregrounds: 100 MB read in order, 20 random reads of 4 KiB a second, a commit of sqlite each 50 ms.
Each round takes every foreground alone and beside each job under each treatment, interleaved; medians over rounds are printed, with the longest wait and
what the job moved meanwhile. Needs a release build, and go, cc, fio, restic, rsync as far as their jobs are asked for; jobs without their tool are left out.
"""

import argparse
import mmap
import os
import random
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TARGET = os.environ.get("CARGO_TARGET_DIR", os.path.join(HERE, "../..", "target"))
DISCNICE = os.path.join(TARGET, "release", "discnice")
GUESTS = os.path.join(HERE, "../..", "tests", "guests")
TREATMENTS = {"nothing": [], "ionice": ["ionice", "-c3"], "discnice": [DISCNICE, "run", "--"]}
GO = """package main
import ("os"; "syscall"; "unsafe")
func main() {
	fd, _ := syscall.Open(os.Args[1], syscall.O_RDONLY|syscall.O_DIRECT, 0)
	raw := make([]byte, 1<<20+4096)
	skip := 4096 - int(uintptr(unsafe.Pointer(&raw[0]))%4096)
	for { if n, _ := syscall.Read(fd, raw[skip:skip+1<<20]); n <= 0 { syscall.Seek(fd, 0, 0) } }
}
"""
GO_ANEW = """package main
import "os"
func main() {
	data := make([]byte, 1<<20)
	for {
		file, _ := os.Create(os.Args[1])
		for n := 0; n < 600; n++ { file.Write(data) }
		file.Close()
	}
}
"""
SMALL_FILES = 2000
FILES_EACH, DIRECTORIES = 100, 120
ON_TREE = {
    "find": "find {tree} -size +1000k",
    "grep": "grep -r nothing-of-this-kind {tree}",
    "tar": "tar cf - {tree} | cat",
    "cp": "rm -rf {folder}/copy; cp -r {tree} {folder}/copy",
    "rclone": "rm -rf {folder}/copy; rclone -q copy {tree} {folder}/copy",
    "links": "cp -rl {tree} {folder}/links; rm -rf {folder}/links",
}
HEAD_START = 2.0


class Jobs:
    def __init__(self, folder, scratch):
        self.ours, self.theirs = os.path.join(folder, "ours"), os.path.join(folder, "theirs")
        for path in (self.ours, self.theirs):
            if not os.path.exists(path) or os.path.getsize(path) < 300 << 20:
                subprocess.run(["dd", "if=/dev/urandom", f"of={path}", "bs=1M", "count=300", "oflag=direct", "status=none"], check=True)
        self.folder, self.scratch = folder, scratch
        # In memory, so that the job only reads the disk.
        self.memory = tempfile.mkdtemp(dir="/dev/shm")

    def close(self):
        shutil.rmtree(self.memory, ignore_errors=True)

    def loop(self, words):
        """A shell that runs something again and again, its file dropped from the cache before."""
        script = os.path.join(self.folder, "again.sh")
        with open(script, "w") as out:
            out.write(f'while :; do dd if={self.ours} iflag=nocache count=0 status=none; "$@"; done\n')
        return ["sh", script, *words]

    def compile(self, *options):
        made = os.path.join(self.scratch, "endless" + "".join(options))
        subprocess.run(["cc", "-O1", "-D_GNU_SOURCE", "-w", *options, "-o", made, os.path.join(GUESTS, "endless.c")], check=True)
        return made

    def restic(self):
        repository = os.path.join(self.memory, "repository")
        os.environ["RESTIC_PASSWORD"] = "beside"
        subprocess.run(["restic", "-q", "-r", repository, "init"], check=True, stdout=subprocess.DEVNULL)
        return ["restic", "-q", "--no-cache", "-r", repository, "backup", "--force", self.ours]

    def compile_go(self, name, text):
        source, made = os.path.join(self.scratch, f"{name}.go"), os.path.join(self.scratch, name)
        with open(source, "w") as out:
            out.write(text)
        subprocess.run(["go", "build", "-o", made, source], check=True, env=dict(os.environ, CGO_ENABLED="0"))
        return made

    def go(self):
        return [self.compile_go("reader", GO), self.ours]

    def go_anew(self):
        return [self.compile_go("writer", GO_ANEW), f"{self.folder}/anew"]

    def static_anew(self):
        return [self.compile("-static"), f"{self.folder}/anew", "anew"]

    def child_anew(self):
        return ["sh", "-c", '"$@"; :', "sh", *self.static_anew()]

    def mapped_anew(self):
        return [self.compile(), f"{self.folder}/anew", "mapped-anew"]

    def untar_static(self):
        return self.untar("busybox tar")

    def untar(self, tar="tar"):
        tree, archive = os.path.join(self.memory, "tree"), os.path.join(self.memory, "tree.tar")
        os.makedirs(tree, exist_ok=True)
        for number in range(SMALL_FILES):
            with open(os.path.join(tree, str(number)), "wb") as out:
                out.write(os.urandom(16 << 10))
        subprocess.run(["tar", "cf", archive, "-C", self.memory, "tree"], check=True)
        shutil.rmtree(tree)
        return self.loop(["sh", "-c", f"rm -rf {self.folder}/tree; {tar} xf {archive} -C {self.folder}"])

    def static(self):
        return [self.compile("-static"), self.ours]

    def mapped(self):
        return [self.compile(), self.ours, "mapped"]

    def rsync(self):
        return self.loop(["rsync", "--whole-file", "--ignore-times", self.ours, self.memory])

    def uring(self):
        return ["fio", "--name=job", f"--filename={self.ours}", "--rw=read", "--bs=256k", "--iodepth=8", "--direct=1", "--ioengine=io_uring",
                "--time_based", "--runtime=600", "--minimal", "--thread"]

    def anew(self):
        """Writes a file anew again and again: the blocks are allocated each time, so that commits of the journal wait for the data."""
        return self.loop(["dd", "if=/dev/zero", f"of={self.folder}/anew", "bs=1M", "count=600", "status=none"])

    def forest(self):
        """A tree of small files on the disk."""
        tree = os.path.join(self.folder, "forest")
        if not os.path.exists(tree):
            for folder in range(DIRECTORIES):
                os.makedirs(os.path.join(tree, str(folder)))
                for number in range(FILES_EACH):
                    with open(os.path.join(tree, str(folder), str(number)), "wb") as out:
                        out.write(os.urandom(random.randrange(40 << 10)))
        return tree

    def cold(self, command):
        """A shell that runs a command again and again, each time with nothing in the cache."""
        command = command.format(tree=self.forest(), folder=self.folder, memory=self.memory)
        return ["sh", "-c", f"while :; do echo 3 > /proc/sys/vm/drop_caches; {command}; done"]

    def borg(self):
        os.environ.update(BORG_BASE_DIR=self.memory, BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK="yes")
        subprocess.run(["borg", "init", "-e", "none", f"{self.memory}/borg"], check=True)
        return self.cold("borg create --files-cache=disabled {memory}/borg::$(date +%s%N) {tree}")

    def gc(self):
        repository = os.path.join(self.folder, "repository")
        if not os.path.exists(repository):
            shutil.copytree(os.path.join(self.forest(), "0"), repository)
            git = ["git", "-C", repository, "-c", "user.name=a", "-c", "user.email=a@example.org"]
            subprocess.run([*git, "init", "-q"], check=True)
            for number in range(40):
                for name in range(FILES_EACH):
                    with open(os.path.join(repository, str(name)), "ab") as out:
                        out.write(os.urandom(64))
                subprocess.run([*git, "add", "-A"], check=True)
                subprocess.run([*git, "commit", "-qm", str(number)], check=True)
        return self.cold(f"git -C {repository} fsck; git -C {repository} repack -adfq")

    def make(self):
        build = os.path.join(self.folder, "build")
        os.makedirs(build, exist_ok=True)
        for number in range(400):
            with open(f"{build}/a{number}.c", "w") as out:
                out.write(f"#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\nint f{number}(void) {{ return {number}; }}\n")
        with open(f"{build}/Makefile", "w") as out:
            out.write("all: $(patsubst %.c,%.o,$(wildcard *.c))\n")
        return self.cold(f"rm -f {build}/*.o; make -s -j8 -C {build}")

    def sort(self):
        lines = os.path.join(self.folder, "lines")
        if not os.path.exists(lines):
            with open(lines, "w") as out:
                for _ in range(300 << 20 >> 6):
                    out.write(f"{random.randrange(1 << 60):063}\n")
        return self.cold(f"sort -S 20M -T {{folder}} -o {{folder}}/sorted {lines}")

    def write(self):
        return self.loop(["dd", "if=/dev/zero", f"of={self.folder}/written", "bs=1M", "count=300", "conv=notrunc", "status=none"])


def seq(jobs, _):
    fd = os.open(jobs.theirs, os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    begun, left = time.monotonic(), 100 << 20
    while left > 0:
        left -= len(os.read(fd, 1 << 20))
    os.close(fd)
    return [time.monotonic() - begun]


def reads(jobs, seconds):
    fd, page, waits = os.open(jobs.theirs, os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, 4096), []
    pages, end = os.fstat(fd).st_size // 4096, time.monotonic() + seconds
    while time.monotonic() < end:
        begun = time.monotonic()
        os.preadv(fd, [page], random.randrange(pages) * 4096)
        waits.append(time.monotonic() - begun)
        time.sleep(max(0, 0.05 - waits[-1]))
    os.close(fd)
    return waits


def sqlite(jobs, seconds):
    path, waits = os.path.join(jobs.folder, "database"), []
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("create table if not exists t(x)")
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        begun = time.monotonic()
        database.execute("insert into t values(1)")
        waits.append(time.monotonic() - begun)
        time.sleep(0.05)
    database.close()
    return waits


def moved(disk):
    """Sectors that the disk has moved."""
    with open("/proc/diskstats") as stats:
        fields = next(line.split() for line in stats if line.split()[0:2] == disk)
    return int(fields[5]) + int(fields[9])


def beside(jobs, words, foreground, seconds):
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    job = subprocess.Popen(words, start_new_session=True, cwd=jobs.folder, **quiet) if words else None
    try:
        if job:
            time.sleep(HEAD_START)
        device = os.stat(jobs.folder).st_dev
        disk = [str(os.major(device)), str(os.minor(device))]
        before, begun = moved(disk), time.monotonic()
        waits = foreground(jobs, seconds)
        return waits, (moved(disk) - before) * 512 / (time.monotonic() - begun)
    finally:
        if job:
            os.killpg(job.pid, signal.SIGKILL)
            job.wait()
            # What it left dirty would be written beside the next.
            os.sync()
            time.sleep(1.0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", default="restic,go,static,mapped,rsync,uring,write,anew")
    parser.add_argument("--treatments", default="nothing,ionice,discnice")
    parser.add_argument("--foregrounds", default="seq,reads,sqlite")
    parser.add_argument("--seconds", type=float, default=5)
    options = parser.parse_args()
    foregrounds = {name: globals()[name] for name in options.foregrounds.split(",")}
    with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        jobs, seen = Jobs(options.folder, scratch), {}
        try:
            work = {}
            for name in options.jobs.split(","):
                try:
                    work[name] = jobs.cold(ON_TREE[name]) if name in ON_TREE else getattr(jobs, name)()
                except (OSError, subprocess.CalledProcessError) as error:
                    print(f"{name}: left out: {error}", file=sys.stderr)
            os.sync()
            for _ in range(options.rounds):
                for label, foreground in foregrounds.items():
                    seen.setdefault((label, "", "alone"), []).append(beside(jobs, None, foreground, options.seconds))
                    for name, words in work.items():
                        for treatment in options.treatments.split(","):
                            one = beside(jobs, TREATMENTS[treatment] + words, foreground, options.seconds)
                            seen.setdefault((label, name, treatment), []).append(one)
                            show(label, name, treatment, [one])
        finally:
            jobs.close()
    print("\nmedians of the rounds")
    for (label, name, treatment), rounds in seen.items():
        show(label, name, treatment, rounds)


def show(label, name, treatment, rounds):
    middle = statistics.median(statistics.median(waits) for waits, _ in rounds)
    late = statistics.median(sorted(waits)[len(waits) * 95 // 100] for waits, _ in rounds)
    longest = statistics.median(max(waits) for waits, _ in rounds)
    disk = statistics.median(disk for _, disk in rounds)
    print(f"{label:7} {name:11} {treatment:9} median {middle * 1e3:8.1f} ms, p95 {late * 1e3:8.1f}, longest {longest * 1e3:8.1f} ms, disk {disk / 1e6:6.1f} MB/s", flush=True)


if __name__ == "__main__":
    main()
