#!/usr/bin/env python3
"""Does the prediction notice that the kernel has written dirty pages meanwhile (DiscNice, 5.2)?

A program writes one region again and again, while another one has everything written now and then (`sync -f`). Nothing limits
its writes, so nothing of ours writes them back. Prints what the kernel's account charged the program (the truth), what
`--estimator predict` charged, and what two other rules would have, replayed on the same run: the paper's, which looks every
500 ms whether the machine has written any block, and entries that expire after 33 s.

usage: eval/benches/flush.py [--runs 3] [--seconds 12] [--mib 4] [--sync 2] [--dir /var/tmp]
"""
import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

PIECE = 64 << 10
MIB = 1 << 20
LOOK = 0.5
EXPIRE = 33.0


def written():
    with open("/proc/vmstat", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("nr_written "))


def work(path, seconds, mib, sync):
    """What runs under the prediction: prints the account and both replayed rules as JSON."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    data = b"x" * PIECE
    begun = time.monotonic()
    looked, seen, synced = begun, written(), begun
    paper = expiry = 0
    since = None
    dirty = False
    while (now := time.monotonic()) < begun + seconds:
        if now - looked >= LOOK:
            looked, before, seen = now, seen, written()
            dirty = dirty and seen == before
        if not dirty:
            paper, dirty = paper + mib * MIB, True
        if since is None or now - since > EXPIRE:
            expiry, since = expiry + mib * MIB, now
        for piece in range(mib * MIB // PIECE):
            os.pwrite(file, data, piece * PIECE)
        if now - synced >= sync:
            synced = now
            subprocess.run(["sync", "-f", path], check=True)
        time.sleep(0.1)
    account = resource.getrusage(resource.RUSAGE_SELF).ru_oublock * 512
    print(json.dumps({"account": account, "paper": paper, "expiry": expiry}))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=12)
    parser.add_argument("--mib", type=int, default=4)
    parser.add_argument("--sync", type=float, default=2)
    parser.add_argument("--dir", default="/var/tmp")
    given = parser.parse_args()
    if given.work:
        return work(given.work, given.seconds, given.mib, given.sync)
    bin_dir = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../target/release/discnice")
    discnice = os.environ.get("DISCNICE_BIN", bin_dir)
    for _ in range(given.runs):
        name = f"flush-{os.getpid()}"
        with tempfile.TemporaryDirectory(dir=given.dir) as folder:
            run = [discnice, "run", "--class", name, "--disk-read", "500M", "--estimator", "predict"]
            words = [sys.executable, os.path.abspath(__file__), "--work", os.path.join(folder, "file")]
            words += ["--seconds", str(given.seconds), "--mib", str(given.mib), "--sync", str(given.sync)]
            told = json.loads(subprocess.run(run + ["--"] + words, check=True, stdout=subprocess.PIPE).stdout)
            show = subprocess.run([discnice, "class", "show", name, "--json"], check=True, stdout=subprocess.PIPE)
            predicted = json.loads(show.stdout)[0]["written"]
            subprocess.run([discnice, "class", "rm", "--force", name], check=True)
        truth = told["account"]
        parts = [("predict", predicted), ("paper", told["paper"]), ("expiry", told["expiry"])]
        errors = ", ".join(f"{rule} {value / MIB:.1f} ({value / truth - 1:+.0%})" for rule, value in parts)
        print(f"account {truth / MIB:.1f} MiB: {errors}", flush=True)


if __name__ == "__main__":
    main()
