#!/usr/bin/env python3
"""What a background job leaves of others' page cache: a warm `grep -r` before and after it.

    sudo python3 eval/benches/cache.py [--memory MIB] [--rounds N] [--jobs tar,restic,rsync] [--folder FOLDER]

A memory control group of MIB makes the cache small. A tree of half of that is read until it is cached; then the job reads twice
the memory, and the tree is searched once more. Printed are the medians of the share of the tree that is still cached when the job has
ended, and of the seconds of the search before and after it. rsync and restic also write what they read, which stays in the cache.

Needs the superuser for the group, fincore(1), restic and rsync. Treatments are interleaved.
"""

import argparse
import contextlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
RELEASE = os.path.join(os.environ.get("CARGO_TARGET_DIR", os.path.join(HERE, "../../target")), "release")
DISCNICE = os.path.realpath(os.path.join(RELEASE, "discnice"))
TREATMENTS = {
    "nothing": [],
    "nice, ionice": ["nice", "-n", "19", "ionice", "-c", "3"],
    "discnice run": [DISCNICE, "run", "--"],
    "discnice, 200M": [DISCNICE, "run", "--disk", "200M", "--cache", "protect", "--"],
}
JOBS = {
    "tar": ["sh", "-c", "tar cf - data | cat"],
    "restic": ["restic", "-q", "--no-cache", "--compression", "off", "--repo", "copy", "backup", "data"],
    "rsync": ["rsync", "-a", "data/", "copy"],
}
PIECE = 16 << 20


@contextlib.contextmanager
def group(mib):
    """A memory control group of this size, as the file into which its processes are written."""
    name = f"discnice-cache-{os.getpid()}"
    old = os.path.isdir("/sys/fs/cgroup/memory")
    place = f"/sys/fs/cgroup/memory/{name}" if old else f"/sys/fs/cgroup/{name}"
    os.mkdir(place)
    try:
        with open(f"{place}/{'memory.limit_in_bytes' if old else 'memory.max'}", "w") as file:
            file.write(str(mib << 20))
        yield f"{place}/cgroup.procs"
    finally:
        for _ in range(100):
            # policyd stays in it until it is idle.
            with open(f"{place}/cgroup.procs") as file, open(f"{os.path.dirname(place)}/cgroup.procs", "w", buffering=1) as out:
                for process in file.read().split():
                    with contextlib.suppress(OSError):
                        out.write(f"{process}\n")
            with contextlib.suppress(OSError):
                os.rmdir(place)
                break
            time.sleep(0.1)


class Scene:
    def __init__(self, folder, procs, mib):
        self.folder, self.procs = folder, procs
        self.environment = {**os.environ, "RESTIC_PASSWORD": "x"}
        self.fill("tree", mib << 19, 1 << 16)
        self.fill("data", mib << 21, 4 << 20)
        os.sync()

    def fill(self, name, size, each):
        """A folder of files that hold nothing that repeats."""
        os.mkdir(f"{self.folder}/{name}")
        for number in range(size // each):
            with open(f"{self.folder}/{name}/{number}", "wb") as file:
                file.write(os.urandom(each))

    def inside(self, words):
        """Runs a command line in the group, and returns the seconds that it took."""
        script = f"echo $$ >{self.procs} && exec \"$@\""
        begun = time.monotonic()
        done = subprocess.run(["sh", "-c", script, "sh", *words], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode > 1:
            raise SystemExit(f"cache.py: {words}: {done.stderr}")
        return time.monotonic() - begun

    def search(self):
        return self.inside(["grep", "-r", "nothing of this", "tree"])

    def cached(self):
        """The share of the tree that is cached."""
        files = [f"{self.folder}/tree/{name}" for name in os.listdir(f"{self.folder}/tree")]
        told = subprocess.run(["fincore", "-nb", "-o", "RES,SIZE", *files], check=True, capture_output=True, text=True).stdout
        pairs = [line.split() for line in told.splitlines()]
        return sum(int(pair[0]) for pair in pairs) / sum(int(pair[1]) for pair in pairs)

    def forget(self, name):
        """Drops what the job has read or written from the cache, so that it begins as the first one did."""
        for where, _, files in os.walk(f"{self.folder}/{name}"):
            for file in files:
                with open(f"{where}/{file}", "rb") as opened:
                    os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def round(self, job, treatment):
        shutil.rmtree(f"{self.folder}/copy", ignore_errors=True)
        if job == "restic":
            subprocess.run(["restic", "-q", "--repo", "copy", "init"], cwd=self.folder, env=self.environment, check=True)
        os.sync()
        # What is cached belongs to the group of the process that reads it first.
        self.forget("data")
        self.forget("tree")
        for _ in range(2):
            self.search()
        before = self.search()
        took = self.inside([*TREATMENTS[treatment], *JOBS[job]])
        cached = self.cached()
        return cached, before, self.search(), took


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memory", type=int, default=2048)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", default=",".join(JOBS))
    parser.add_argument("--folder", default="/var/tmp")
    arguments = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="discnice-cache-", dir=arguments.folder)
    print(f"{'job':8}{'treatment':16}{'cached':>8}{'before':>9}{'after':>9}{'job took':>10}", flush=True)
    try:
        with group(arguments.memory) as procs:
            scene = Scene(folder, procs, arguments.memory)
            for job in arguments.jobs.split(","):
                seen = {treatment: [] for treatment in TREATMENTS}
                for _ in range(arguments.rounds):
                    for treatment, all_of_it in seen.items():
                        all_of_it.append(scene.round(job, treatment))
                for treatment, all_of_it in seen.items():
                    cached, before, after, took = (statistics.median(one) for one in zip(*all_of_it))
                    print(f"{job:8}{treatment:16}{cached:8.0%}{before:8.2f}s{after:8.2f}s{took:9.1f}s", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
