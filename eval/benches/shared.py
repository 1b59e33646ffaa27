#!/usr/bin/env python3
"""Is a budget shared fairly, changed at once, and kept whatever happens to its members?

- fair: 32 readers of files of their own share one class; Jain's index of what each got;
- short: 1,000 short processes in a row, each reading a cold file;
- live: the limit of a running job is raised tenfold; when does its rate follow?
- kill: members are killed at random moments and replaced; nobody hangs, the sum holds;
- crowd: what a cached read costs with 1,000 processes in the class, against one.

Needs no root: files are made cold by posix_fadvise(DONTNEED).
"""
import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MIB = 1 << 20


def cold(path):
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def make(path, size):
    with open(path, "wb") as file:
        file.write(os.urandom(size))
        file.flush()
        os.fsync(file.fileno())
    cold(path)
    return path


class Bench:
    def __init__(self, discnice, folder):
        self.discnice, self.folder = discnice, folder
        self.number = 0

    def name(self):
        self.number += 1
        return f"shared-{os.getpid()}-{self.number}"

    def cli(self, *arguments):
        return subprocess.run([self.discnice, *arguments], check=True, text=True,
                              stdout=subprocess.PIPE).stdout

    def show(self, name):
        return json.loads(self.cli("class", "show", name, "--json"))[0]

    def start(self, name, command):
        return subprocess.Popen([self.discnice, "run", "--class", name, "--", *command],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def reader(self, path):
        return ["dd", f"if={path}", "of=/dev/null", "bs=64k", "status=none"]

    def fair(self, seconds=12, readers=32, rate=20):
        name = self.name()
        self.cli("class", "set", name, "--disk", f"{rate}M")
        files = [make(f"{self.folder}/fair{n}", seconds * rate * MIB // readers * 2)
                 for n in range(readers)]
        running = [self.start(name, self.reader(path)) for path in files]
        time.sleep(2)
        first = self.amounts(running)
        begin = time.monotonic()
        time.sleep(seconds - 4)
        last, elapsed = self.amounts(running), time.monotonic() - begin
        got = [b - a for a, b in zip(first, last)]
        jain = sum(got) ** 2 / (len(got) * sum(x * x for x in got))
        print(f"fair    {readers} readers at {rate} MiB/s: sum {sum(got) / elapsed / rate / MIB:.3f} "
              f"of the limit, Jain's index {jain:.3f}")
        self.end(name, running)

    @staticmethod
    def amounts(running):
        def read(process):
            with open(f"/proc/{process.pid}/io") as file:
                return int(dict(line.split(": ") for line in file)["read_bytes"])
        return [read(process) for process in running]

    def end(self, name, running=()):
        for process in running:
            process.kill()
            process.wait()
        self.cli("class", "rm", name, "--force")

    def short(self, count=1000, size=128 << 10, rate=20):
        name = self.name()
        self.cli("class", "set", name, "--disk", f"{rate}M")
        files = [make(f"{self.folder}/short{n}", size) for n in range(count)]
        script = "for f in " + " ".join(files) + "; do cat $f; done"
        with open(f"{self.folder}/script", "w") as file:
            file.write(script)
        begin = time.monotonic()
        self.start(name, ["sh", f"{self.folder}/script"]).wait()
        elapsed = time.monotonic() - begin
        moved = self.show(name)["read"]
        print(f"short   {count} processes in a row: {moved / elapsed / rate / MIB:.3f} of the limit, "
              f"charged {moved / (count * size):.3f} of what they read")
        self.end(name)

    def live(self, repeats=5):
        delays = []
        for _ in range(repeats):
            name = self.name()
            self.cli("class", "set", name, "--disk", "5M")
            path = make(f"{self.folder}/live", 100 * MIB)
            process = self.start(name, self.reader(path))
            time.sleep(1.5)
            before = self.amounts([process])[0]
            begin = time.monotonic()
            self.cli("class", "set", name, "--disk", "50M")
            # At the old rate 512 KiB take 100 ms; at the new one 10.
            while self.amounts([process])[0] < before + 2 * MIB:
                time.sleep(0.001)
            took = time.monotonic() - begin
            delays.append(took - 2 / 50)
            self.end(name, [process])
        delays.sort()
        print(f"live    5 to 50 MiB/s: follows after {delays[repeats // 2] * 1e3:.0f} ms "
              f"(median, at most {delays[-1] * 1e3:.0f} ms)")

    def kill(self, kills=1000, members=16, rate=20):
        name = self.name()
        self.cli("class", "set", name, "--disk", f"{rate}M")
        files = [make(f"{self.folder}/kill{n}", 64 * MIB) for n in range(members)]
        running = [self.start(name, self.reader(path)) for path in files]
        begin, before = time.monotonic(), self.show(name)["read"]
        for number in range(kills):
            time.sleep(random.uniform(0, 0.03))
            victim = random.randrange(members)
            running[victim].send_signal(signal.SIGKILL)
            running[victim].wait()
            if number % 8 == 0:
                cold(files[victim])
            running[victim] = self.start(name, self.reader(files[victim]))
        elapsed = time.monotonic() - begin
        moved = self.show(name)["read"] - before
        for path in files:
            cold(path)
        marks = self.amounts(running)
        time.sleep(3)
        alive = sum(b > a or process.poll() is not None
                    for a, b, process in zip(marks, self.amounts_or_done(running, marks), running))
        print(f"kill    {kills} kills in {elapsed:.0f} s: {moved / elapsed / rate / MIB:.3f} of the "
              f"limit, {alive} of {members} members go on")
        self.end(name, running)

    def amounts_or_done(self, running, marks):
        result = []
        for process, mark in zip(running, marks):
            try:
                result.append(self.amounts([process])[0])
            except OSError:
                result.append(mark)
        return result

    def crowd(self, members=1000):
        source = f"{self.folder}/pread.c"
        with open(source, "w") as file:
            file.write(PREAD)
        subprocess.run(["cc", "-O2", "-o", f"{self.folder}/pread", source], check=True)
        data = make(f"{self.folder}/crowd", 64 << 10)
        name = self.name()
        self.cli("class", "set", name, "--disk", "100M")

        def cost():
            command = [self.discnice, "run", "--class", name, "--", f"{self.folder}/pread", data]
            values = [float(subprocess.check_output(command, text=True)) for _ in range(5)]
            return sorted(values)[2]
        alone = cost()
        running = [self.start(name, ["sleep", "1000"]) for _ in range(members)]
        time.sleep(3)
        crowded = cost()
        listed = len(self.show(name)["members"])
        print(f"crowd   a cached 4 KiB pread: {alone:.0f} ns alone, {crowded:.0f} ns beside {members} "
              f"members ({listed} listed): {crowded / alone:.3f}")
        self.end(name, running)


PREAD = r"""
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
int main(int argc, char **argv) {
    static char buffer[4096];
    int fd = open(argv[1], O_RDONLY);
    double best = 1e9;
    for (int round = 0; round < 50; round++) {
        struct timespec a, b;
        clock_gettime(CLOCK_MONOTONIC, &a);
        for (int i = 0; i < 5000; i++)
            pread(fd, buffer, sizeof buffer, 0);
        clock_gettime(CLOCK_MONOTONIC, &b);
        double each = ((b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec)) / 5000;
        best = each < best ? each : best;
    }
    printf("%f\n", best);
}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--discnice", default=os.path.join(HERE, "../../target/release/discnice"))
    parser.add_argument("--only", default="fair,short,live,kill,crowd")
    arguments = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="discnice-shared-", dir=".")
    try:
        bench = Bench(os.path.abspath(arguments.discnice), os.path.abspath(folder))
        for name in arguments.only.split(","):
            getattr(bench, name)()
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
