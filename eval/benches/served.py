#!/usr/bin/env python3
"""Do limits hold where a daemon serves the files (FUSE)?

A daemon writes what it is told to, and the kernel what the daemon dirtied, later: no account has it. bindfs serves a folder on
a loop device of its own, run by the unprivileged user who copies many small files into it with rsync under a limit. Prints,
from the device's counters, the mean rate and the highest 5 s window as fractions of the limit, while rsync runs and with what is
left for a sync(2) behind it; and the same without a limit's write-back (`--estimator account`, which sees nothing there). What is
read is in the cache: it runs without a limit first.

Needs root (loop device), bindfs and rsync. Everything is unmounted and detached on every way out.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time

import rates
from kept import Kept

MIB = 1 << 20
USER = dict(user=rates.NOBODY, group=rates.NOBODY, extra_groups=[], cwd="/")


class Served:
    """A folder on a disk of its own, served by the user's own daemon."""

    def __init__(self, folder, fs):
        self.disk = rates.Disk(folder, fs, 2 << 30, 128)
        self.below, self.folder = f"{self.disk.mount}/below", f"{folder}/served"
        for path in (self.below, self.folder):
            os.makedirs(path)
            os.chown(path, rates.NOBODY, rates.NOBODY)
        try:
            subprocess.run(["bindfs", "--no-allow-other", self.below, self.folder], check=True, **USER)
        except BaseException:
            self.close()
            raise

    def close(self):
        subprocess.run(["umount", self.folder], stderr=subprocess.DEVNULL)
        self.disk.close()


def measure(served, words):
    """Runs it; (samples of (time, device's bytes) while it runs, and with the sync(2) behind it)."""
    subprocess.run(["sync"], check=True)
    before, begun = sum(served.disk.counters()), time.monotonic()
    samples = []

    def sample():
        samples.append((time.monotonic() - begun, sum(served.disk.counters()) - before))
        time.sleep(0.01)

    with subprocess.Popen(words, **USER) as process:
        while process.poll() is None:
            sample()
    if process.returncode != 0:
        sys.exit(f"served.py: {words[0]} failed with {process.returncode}")
    running = list(samples)
    with subprocess.Popen(["sync"]) as process:
        while process.poll() is None:
            sample()
    sample()
    return running, samples


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rate", type=float, default=3, help="MiB/s")
    parser.add_argument("--fs", default="ext4", help="of the disk below")
    parser.add_argument("--source", default="/usr/include", help="folder that is copied")
    parser.add_argument("--estimators", default="auto,account")
    parser.add_argument("--discnice", default=os.path.join(rates.HERE, "../../target/release/discnice"))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        os.chmod(folder, 0o755)
        served, kept = Served(folder, arguments.fs), Kept()
        try:
            print(f"{'estimator':<10} {'s':>6} {'MiB':>7} {'mean':>6} {'5 s':>6} {'with sync':>9}")
            def copy(estimator, limit):
                return [arguments.discnice, "run", "--estimator", estimator, "--disk", limit, "--", "rsync", "-a",
                        f"{arguments.source}/", f"{served.folder}/copy"]

            for estimator in arguments.estimators.split(","):
                subprocess.run(copy(estimator, "unlimited"), check=True, **USER)
                shutil.rmtree(f"{served.below}/copy")
                kept.keep()
                running, samples = measure(served, copy(estimator, f"{arguments.rate}M"))
                limit, (elapsed, _) = arguments.rate * MIB, running[-1]
                moved = samples[-1][1]
                highest = [rates.highest(some, 1, 5) / limit / 5 for some in (running, samples)]
                print(f"{estimator:<10} {elapsed:6.1f} {moved / MIB:7.1f} {moved / limit / elapsed:6.3f} "
                      f"{highest[0]:6.3f} {highest[1]:9.3f}", flush=True)
                shutil.rmtree(f"{served.below}/copy")
        finally:
            served.close()


if __name__ == "__main__":
    main()
