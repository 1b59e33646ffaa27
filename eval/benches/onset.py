#!/usr/bin/env python3
"""How soon a job without a number gives way, and how soon it is back.

    python3 eval/benches/onset.py [--rounds N] [--foreground reads|seq|commits] [--work SECONDS] [--idle SECONDS] [--folder DIR]

The job reads a file past the cache, 256 KiB at a time, without an end, below `discnice run --`. In each round a foreground works on the same
disk for a while: reads of 4 KiB at random offsets past the cache one after the other, reads of 256 KiB in order, or writes of 4 KiB with fsync(2) each 20 ms.
The account of the job (/proc/PID/io) is sampled each millisecond. Printed are the median, the 95th percentile and the longest of:

held    from the foreground's first I/O until the job moves less than a quarter of its free rate, over 10 ms;
back    from the foreground's last I/O until the job moves half of its free rate, over 50 ms.

Its free rate is the median before the rounds. A round in which it is never held counts as long as the foreground works, and one in which it does not come
back as long as the pause. Needs a release build; no rights. The disk must be idle otherwise.
"""

import argparse
import bisect
import mmap
import multiprocessing
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from kills import DISCNICE

PIECE, PAGE, SIZE = 256 << 10, 4 << 10, 256 << 20
HELD_SPAN, SPAN = 0.01, 0.05
JOB = f"""
import mmap, os, sys
file, piece, at = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, {PIECE}), 0
while True:
    os.preadv(file, [piece], at)
    at = (at + {PIECE}) % {SIZE}
"""


def sample(pid, ended, samples):
    """Tells what a process has read, each millisecond."""
    times, read = [], []
    with open(f"/proc/{pid}/io", "rb", buffering=0) as file:
        while not ended.is_set():
            text = os.pread(file.fileno(), 512, 0)
            read.append(int(text.split(b"read_bytes: ")[1].split()[0]))
            times.append(time.monotonic())
            time.sleep(0.001)
    samples.send((times, read))


class Account:
    """What a process has read, sampled by a process of its own: the foreground takes a processor."""

    def __init__(self, pid):
        self.ended = multiprocessing.Event()
        self.samples, theirs = multiprocessing.Pipe(duplex=False)
        self.sampler = multiprocessing.Process(target=sample, args=(pid, self.ended, theirs), daemon=True)
        self.sampler.start()

    def end(self):
        self.ended.set()
        self.times, self.bytes = self.samples.recv()
        self.sampler.join()

    def at(self, moment):
        return self.bytes[min(bisect.bisect_left(self.times, moment), len(self.bytes) - 1)]

    def rate(self, begin, span=SPAN):
        return (self.at(begin + span) - self.at(begin)) / span

    def since(self, begin, end, span, holds):
        """Seconds from `begin` until the rate over a span holds; all until `end` if it does not."""
        moment = begin
        while moment < end:
            if holds(self.rate(moment, span)):
                return moment - begin
            moment += 0.001
        return end - begin


def make(path):
    with open(path, "wb") as out:
        for _ in range(SIZE >> 20):
            out.write(os.urandom(1 << 20))
        os.fsync(out.fileno())
    return os.open(path, os.O_RDONLY | os.O_DIRECT)


def work(kind, file, writable, seconds):
    """The foreground; returns when its first I/O began and its last ended."""
    size, begun, at = (PIECE if kind == "seq" else PAGE), time.monotonic(), 0
    piece = mmap.mmap(-1, size)
    while (now := time.monotonic()) < begun + seconds:
        if kind == "commits":
            os.pwrite(writable, os.urandom(PAGE), 0)
            os.fsync(writable)
            time.sleep(max(0, 0.02 - (time.monotonic() - now)))
        else:
            offset = at if kind == "seq" else random.randrange(SIZE // PAGE) * PAGE
            os.preadv(file, [piece], offset)
            at = (at + size) % SIZE
    return begun, time.monotonic()


def measure(options, folder):
    make(f"{folder}/job")
    file, writable = make(f"{folder}/foreground"), os.open(f"{folder}/commits", os.O_RDWR | os.O_CREAT)
    job = subprocess.Popen([DISCNICE, "run", "--", sys.executable, "-c", JOB, f"{folder}/job"], start_new_session=True)
    try:
        time.sleep(options.idle)
        account, rounds, before = Account(job.pid), [], time.monotonic()
        time.sleep(options.idle)
        for _ in range(options.rounds):
            begun, ended = work(options.foreground, file, writable, options.work)
            # The moment at which the next one begins is no multiple of anything of ours.
            time.sleep(options.idle + random.random() * 0.1)
            rounds.append((begun, ended, time.monotonic()))
        account.end()
    finally:
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()
    spans = int((rounds[0][0] - before) / SPAN) - 1
    free = statistics.median(account.rate(before + span * SPAN) for span in range(spans))
    held = [account.since(begun, ended, HELD_SPAN, lambda rate: rate < free / 4) for begun, ended, _ in rounds]
    back = [account.since(ended, over, SPAN, lambda rate: rate > free / 2) for _, ended, over in rounds]
    print(f"{options.foreground}, {options.rounds} rounds; free rate of the job {free / 1e6:.0f} MB/s")
    for name, times in (("held", held), ("back", back)):
        times = [1e3 * seconds for seconds in sorted(times)]
        print(f"{name}  median {statistics.median(times):7.1f} ms, p95 {times[len(times) * 95 // 100]:7.1f}, longest {times[-1]:7.1f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--foreground", choices=["reads", "seq", "commits"], default="reads")
    parser.add_argument("--work", type=float, default=0.7)
    parser.add_argument("--idle", type=float, default=2.5)
    parser.add_argument("--folder", default="/var/tmp")
    options = parser.parse_args()
    if not os.access(DISCNICE, os.X_OK):
        sys.exit(f"build first: {DISCNICE}")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        measure(options, folder)


if __name__ == "__main__":
    main()
