#!/usr/bin/env python3
"""Nothing that dies leaves a held program standing, failing or free.

    python3 eval/benches/kills_held.py [--mechanism freeze,signals,freezer,seccomp] [--kills N] [--folder DIR]

For each mechanism a program that our library is not in (attached, or below a filter) reads and writes under 8 MiB/s, and whoever holds it gets
SIGKILL at random moments: policyd, which holds by ptrace(2), or by stop signals where a filter forbids it ptrace, or then
by a freezer cgroup if the program is in one of its user's (`freezer`: as root only, who makes that cgroup and runs all in it as the user nobody);
or one of the two supervisors below which the program makes its calls. After each kill
- the program must be seen not stopped, nor its cgroup frozen, within 1 s;
- policyd is started by the next use, which is another command of the class;
- from 1 s after that, the program must move no more than the limit allows;
- no call of it may have failed: it ends at the first one that returns an error or too few bytes.

Needs a release build; no rights but for `freezer`, which is skipped visibly without. Run it as a user without other limited jobs, which its policyd would watch, too.
"""

import argparse
import contextlib
import ctypes
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time

from kills import DISCNICE, kill, state, wait_for

WORKING = """
import mmap, os, sys
path = sys.argv[1]
with open(path, "wb") as out:
    out.write(bytes(4 << 20))
    os.fsync(out.fileno())
file, room = os.open(path, os.O_RDWR | os.O_DIRECT), mmap.mmap(-1, 1 << 14)
while True:
    for at in range(0, 4 << 20, len(room)):
        move = os.pwritev if at % (1 << 17) == 0 else os.preadv
        if move(file, [room], at) != len(room):
            sys.exit("a call moved too little")
"""
LIMIT = 8 << 20
NOBODY = 65534
# Within this a program that nobody holds any more must go on, and one that is found again be held.
PATIENCE = 1
# How long its rate is then looked at, in seconds, and what may pass at once.
LOOK, AT_ONCE = 0.3, 2 << 20
SYS_PTRACE, ARCHITECTURE = {"x86_64": (101, 0xC000003E), "aarch64": (117, 0xC00000B7)}[os.uname().machine]


def forbid_ptrace():
    """Makes ptrace(2) fail with EPERM in this process and all that it starts, as Yama does. seccomp(2)"""
    rows = [(0x20, 0, 0, 4), (0x15, 0, 3, ARCHITECTURE), (0x20, 0, 0, 0), (0x15, 0, 1, SYS_PTRACE),
            (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in rows))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(rows), ctypes.addressof(code)))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    # PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP with SECCOMP_MODE_FILTER
    if prctl(38, 1, 0, 0, 0) or prctl(22, 2, program):
        raise OSError(ctypes.get_errno(), "no filter")


def delegated(name):
    """A new cgroup of version 2 that belongs to the user nobody; None where there is none to be had."""
    with open("/proc/self/mountinfo") as mounts:
        points = [line.split()[4] for line in mounts if " - cgroup2 " in line]
    if os.geteuid() or not points:
        return None
    path = os.path.join(points[0], name)
    try:
        os.mkdir(path)
    except OSError:
        return None
    for file in ("", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control"):
        os.chown(os.path.join(path, file), NOBODY, NOBODY)
    return path


class Scene:
    def __init__(self, folder, mechanism, cgroup=None):
        self.mechanism, self.name, self.cgroup = mechanism, f"kills-{os.getpid()}-{mechanism}", cgroup
        if cgroup:
            os.chown(folder, NOBODY, NOBODY)
        self.mark = f"DISCNICE_KILLS={self.name}".encode()
        self.environment = dict(os.environ, XDG_RUNTIME_DIR=folder, XDG_STATE_HOME=folder, DISCNICE_KILLS=self.name)
        script = os.path.join(folder, "job.py")
        with open(script, "w") as out:
            out.write(WORKING)
        command = ["python3", script, script + ".data"]
        limits = ["--class", self.name, "--disk", "8M"]
        if mechanism == "seccomp":
            self.process = self.start(["run", *limits, "--mechanism", "seccomp", "--", *command])
        else:
            self.process = subprocess.Popen(command, env=self.environment, preexec_fn=self.move)
            if self.start(["attach", *limits, "--background", str(self.process.pid)]).wait():
                sys.exit("failed: it cannot be attached")
        self.pid = self.process.pid

    def start(self, words):
        return subprocess.Popen([DISCNICE, *words], env=self.environment, preexec_fn=self.prepare)

    def move(self):
        """Into the cgroup and its user, if there is one."""
        if self.cgroup:
            with open(os.path.join(self.cgroup, "cgroup.procs"), "w") as procs:
                procs.write("0")
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)

    def prepare(self):
        self.move()
        if self.mechanism in ("signals", "freezer"):
            forbid_ptrace()

    def holders(self):
        """Who holds the program: the daemon or the supervisors of this scene, and of no other."""
        found = {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/comm") as comm, open(f"/proc/{pid}/environ", "rb") as environment:
                    name, marked = comm.read().strip(), self.mark in environment.read().split(b"\0")
                with open(f"/proc/{pid}/cmdline", "rb") as words, open(f"/proc/{pid}/stat") as stat:
                    daemon = words.read().split(b"\0")[1:2] == [b"policyd"] and name == "discnice"
                    parent = int(stat.read().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
            if marked and (name == "discnice-notify" if self.mechanism == "seccomp" else daemon):
                found[int(pid)] = parent
        # The guardian, who continues what a killed daemon stopped, is the daemon's child.
        return [pid for pid, parent in found.items() if self.mechanism == "seccomp" or parent not in found]

    def use(self):
        """Another command of the class."""
        if self.mechanism != "seccomp" and self.start(
                ["run", "--class", self.name, "--mechanism", "freeze", "--", "true"]).wait():
            sys.exit("failed: another command of the class")

    def check_alive(self):
        if self.process.poll() is not None:
            sys.exit(f"failed: {self.mechanism}: the program ended with {self.process.returncode}: a call failed")

    def goes_on(self):
        self.check_alive()
        return not self.is_frozen() and state(self.pid) not in ("T", "t")

    def is_frozen(self):
        if not self.cgroup:
            return False
        if state(self.pid) in ("T", "t"):
            sys.exit("failed: freezer: it is held by something else")
        # What is frozen in it are children of it, each the cgroup of one process.
        for child in os.scandir(self.cgroup):
            with contextlib.suppress(OSError), open(os.path.join(child.path, "cgroup.freeze")) as freeze:
                if int(freeze.read()):
                    return True
        return False

    def moved(self):
        self.check_alive()
        with open(f"/proc/{self.pid}/io") as file:
            fields = dict(line.split(": ") for line in file.read().splitlines())
        return int(fields["read_bytes"]) + int(fields["write_bytes"])

    def end(self):
        self.process.kill()
        self.process.wait()
        subprocess.run([DISCNICE, "class", "rm", "--force", self.name], env=self.environment, preexec_fn=self.prepare,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if self.cgroup:
            for pid in self.holders():
                os.kill(pid, signal.SIGTERM)
            wait_for("its cgroup stays", self.is_removed)

    def is_removed(self):
        with contextlib.suppress(OSError):
            os.rmdir(self.cgroup)
        return not os.path.exists(self.cgroup)


def one(scene):
    """One kill; returns whether the program stood at that moment, and its rate afterwards over the limit."""
    time.sleep(random.uniform(0, 0.4))
    victim = random.choice(wait_for("nobody holds the program", scene.holders))
    stood = not scene.goes_on()
    kill(victim)
    wait_for(f"{scene.mechanism}: the program was left stopped", scene.goes_on, PATIENCE)
    scene.use()
    time.sleep(PATIENCE)
    begun, before = time.monotonic(), scene.moved()
    time.sleep(LOOK)
    moved, elapsed = scene.moved() - before, time.monotonic() - begun
    if moved > LIMIT * elapsed + AT_ONCE:
        sys.exit(f"failed: {scene.mechanism}: {moved} bytes in {elapsed:.2f} s after the next use")
    return stood, moved / LIMIT / elapsed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mechanism", default="freeze,signals,freezer,seccomp", help="comma-separated")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--folder", default="/var/tmp")
    options = parser.parse_args()
    if not os.access(DISCNICE, os.X_OK):
        sys.exit(f"build first: {DISCNICE}")
    for mechanism in options.mechanism.split(","):
        cgroup = delegated(f"discnice-kills-{os.getpid()}") if mechanism == "freezer" else None
        if mechanism == "freezer" and not cgroup:
            print("freezer: SKIPPED: only root can make a cgroup for it, where version 2 is mounted", flush=True)
            continue
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            scene = Scene(folder, mechanism, cgroup)
            try:
                time.sleep(1)
                seen = [one(scene) for _ in range(options.kills)]
                scene.check_alive()
            finally:
                scene.end()
        stood = sum(stood for stood, _ in seen)
        print(f"{mechanism}: {len(seen)} kills, {stood} while the program stood: none left stopped, no call failed; "
              f"afterwards at most {max(rate for _, rate in seen):.2f} of the limit over {LOOK} s", flush=True)


if __name__ == "__main__":
    main()
