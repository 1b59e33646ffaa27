#!/usr/bin/env python3
"""Nothing that dies leaves a polite job stopped or a target file torn.

    python3 eval/benches/kills.py [--kills N] [--folder DIR]

Two jobs run under `discnice run --polite`, so they take turns: each is stopped and continued several times a
second by a regulator of its own. One reads, and policyd freezes it to hold it to 8 MiB/s; the other computes. One
after the other, at random moments, one of these gets SIGKILL: a job, one of policyd's two processes, a regulator, or a regulator whose
job has just ended and which may be saving its targets. After each kill, every job that is alive must be seen
not stopped within 2 s, unless its living regulator says that it is suspended; one that nobody regulates any more
must stay so; each target file must still be there and whole. The killed are replaced.

Needs a release build; no rights. Run it as a user without other limited jobs, which its policyd would watch, too.
"""

import argparse
import collections
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TARGET = os.environ.get("CARGO_TARGET_DIR", os.path.join(HERE, "../..", "target"))
DISCNICE = os.path.join(TARGET, "release", "discnice")
READING = """
import mmap, os, sys
with open(sys.argv[0] + ".data", "wb") as out:
    out.write(bytes(4 << 20))
    os.fsync(out.fileno())
file, room = os.open(sys.argv[0] + ".data", os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, 1 << 16)
while True:
    for at in range(0, 4 << 20, len(room)):
        os.preadv(file, [room], at)
"""
COMPUTING = "while True: pass"
# What each job does, and under which limits.
JOBS = [(READING, ["--disk", "8M", "--mechanism", "freeze"]), (COMPUTING, [])]
PATIENCE = 2
MAGIC = b"discnice-targets 1 "


def wait_for(what, get, patience=10):
    deadline = time.monotonic() + patience
    while not (found := get()):
        if time.monotonic() > deadline:
            sys.exit(f"failed: {what}")
        time.sleep(0.002)
    return found


def state(pid):
    """The letter of /proc/PID/stat; None when there is no such process."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return None


def kill(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


class Job:
    def __init__(self, scene, number):
        # Each script has targets of its own.
        script = os.path.join(scene.folder, f"job{number}.py")
        text, limits = JOBS[number]
        with open(script, "w") as out:
            out.write(text)
        words = ["run", "--polite", "--no-probation", *limits, "--", "python3", script]
        self.process = subprocess.Popen([DISCNICE, *words], env=scene.environment)
        self.pid = self.process.pid
        self.scene = scene
        self.regulator = wait_for("nobody regulates", self.told)["regulator"]

    def told(self):
        """What `discnice status` tells of it."""
        told = subprocess.run(
            [DISCNICE, "status", "--json"], env=self.scene.environment, capture_output=True, check=True
        )
        return next((job for job in json.loads(told.stdout)["jobs"] if job["process"] == self.pid), None)

    def may_run(self):
        """Whether it is not stopped, or for a good reason."""
        if not self.is_stopped():
            return True
        told = self.told() if state(self.regulator) else None
        return told is not None and told["suspended"]

    def is_stopped(self):
        return state(self.pid) in ("T", "t")

    def end(self):
        self.process.kill()
        self.process.wait()


def policyds(folder):
    """The processes of the policyd whose runtime directory this is, and of no other."""
    mark = f"XDG_RUNTIME_DIR={folder}".encode()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/cmdline", "rb") as words, open(f"/proc/{pid}/environ", "rb") as environment:
                if words.read().split(b"\0")[1:2] == [b"policyd"] and mark in environment.read().split(b"\0"):
                    yield int(pid)


class Scene:
    def __init__(self, folder):
        self.folder = folder
        self.environment = dict(os.environ, XDG_RUNTIME_DIR=folder, XDG_STATE_HOME=folder)
        self.targets = os.path.join(folder, "discnice", "targets")
        self.known = set()
        self.jobs = [Job(self, 0), Job(self, 1)]

    def policyd(self):
        """One of the two processes of this scene's daemon: the one that watches, or the one that starts another."""
        found = list(policyds(self.folder))
        return random.choice(found) if found else None

    def replace(self, i):
        self.jobs[i].end()
        self.jobs[i] = Job(self, i)

    def check_jobs(self, unregulated=None):
        for job in self.jobs:
            if job.process.poll() is None:
                wait_for("a job was left stopped", job.may_run, PATIENCE)
        if unregulated is self.jobs[1]:
            time.sleep(0.02)
            if unregulated.is_stopped():
                sys.exit("failed: a job that nobody regulates was stopped again")

    def check_targets(self):
        found = set(os.listdir(self.targets)) if os.path.isdir(self.targets) else set()
        whole = {name for name in found if name.endswith(".targets")}
        if not self.known <= whole:
            sys.exit(f"failed: target files were lost: {self.known - whole}")
        self.known = whole
        for name in whole:
            with open(os.path.join(self.targets, name), "rb") as file:
                head, _, body = file.read().partition(b"\n")
            if head != MAGIC + b"%016x" % fnv1a(body):
                sys.exit(f"failed: {name} is torn")
        if any(name.endswith(".set-aside") for name in found):
            sys.exit(f"failed: targets were set aside: {found}")


def fnv1a(data):
    total = 0xCBF29CE484222325
    for byte in data:
        total = (total ^ byte) * 0x100000001B3 & (1 << 64) - 1
    return total


def kill_job(scene, i):
    kill(scene.jobs[i].pid)
    scene.jobs[i].process.wait()
    scene.check_jobs()


def kill_policyd(scene, i):
    kill(wait_for("policyd does not run", scene.policyd))
    scene.check_jobs()


def kill_regulator(scene, i):
    kill(scene.jobs[i].regulator)
    scene.check_jobs(unregulated=scene.jobs[i])


def kill_saving_regulator(scene, i):
    kill(scene.jobs[i].pid)
    scene.jobs[i].process.wait()
    # It notices at its next look, after 0.2 s at most.
    time.sleep(random.uniform(0, 0.25))
    kill(scene.jobs[i].regulator)
    scene.check_jobs()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--folder", default="/var/tmp")
    options = parser.parse_args()
    if not os.access(DISCNICE, os.X_OK):
        sys.exit(f"build first: {DISCNICE}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    random.seed(8)
    kinds = [kill_job, kill_policyd, kill_regulator, kill_saving_regulator]
    done, stopped = collections.Counter(), [0, 0]
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        scene = Scene(folder)
        try:
            for number in range(options.kills):
                time.sleep(random.uniform(0, 0.6))
                kind, victim = kinds[number % len(kinds)], random.randrange(2)
                # Its next start is what starts policyd again.
                victim = 0 if kind is kill_policyd else victim
                stopped = [before + job.is_stopped() for before, job in zip(stopped, scene.jobs)]
                kind(scene, victim)
                scene.check_targets()
                scene.replace(victim)
                done[kind.__name__] += 1
        finally:
            for job in scene.jobs:
                job.end()
            # They save before they go.
            for job in scene.jobs:
                wait_for("a regulator outlives its job", lambda job=job: state(job.regulator) is None)
    counts = ", ".join(f"{count} {name}" for name, count in done.items())
    print(f"{counts}: nothing left stopped, {len(scene.known)} target files whole, none lost")
    print(f"the job that reads was stopped at {stopped[0]} of these moments, the one that computes at {stopped[1]}")


if __name__ == "__main__":
    main()
