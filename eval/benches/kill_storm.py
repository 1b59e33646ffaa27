#!/usr/bin/env python3
"""Real work comes out whole, whatever of ours dies beside it.

    python3 eval/benches/kill_storm.py [--rounds N] [--mechanism preload,freeze,seccomp] [--folder DIR] [--seed N]

Each round runs one piece of work under a limit that holds it: commits into an SQLite database in WAL mode, a tree
packed and unpacked by tar, copied by rsync, or committed and repacked by git. Beside it another member of the class
reads, and `discnice refresh` rewrites a tree in a class of its own. At random moments one to three of these get
SIGKILL: the work itself, the other member, policyd, a supervisor of the seccomp filter, the regulator of work that
runs under `--polite`, or the refresh. Afterwards
- work that was not killed has ended with status 0, and its tree is the source's, byte for byte;
- SQLite's integrity_check says ok, and each row that the work acknowledged is there, killed or not;
- git fsck finds no fault, and a tar or rsync that was killed gives the source's tree when it runs again;
- the refreshed tree is what it was, and the next refresh leaves no work area;
- within 2 s of each kill nothing is stopped that its holder, alive, does not hold.

Needs a release build, sqlite3 for Python, tar, rsync and git; no rights. Run it as a user without other limited jobs.
"""

import argparse
import collections
import contextlib
import hashlib
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

from kills import DISCNICE, state

COMMITS = """
import sqlite3, sys
base = sqlite3.connect(sys.argv[1], isolation_level=None)
base.execute("pragma journal_mode=wal")
base.execute("pragma synchronous=full")
base.execute("create table if not exists rows(number integer primary key, text blob)")
for number in range(int(sys.argv[2])):
    base.execute("insert into rows values(?, ?)", (number, bytes([number % 251]) * 8192))
    sys.stdout.write(f"{number}\\n")
    sys.stdout.flush()
"""
GIT = """
set -e
git init -q "$2"
cd "$2"
git config user.email a@example.org && git config user.name a && git config core.fsync all && git config gc.auto 0
cp -r "$1/." .
git add -A && git commit -qm one
find . -path ./.git -prune -o -type f -size -8k -exec sh -c 'for file; do echo more >>"$file"; done' sh {} +
git commit -qam two
git repack -qad
git reset -q --hard HEAD~1
"""
TAR = 'set -e; tar -cf "$2.tar" -C "$1" .; mkdir -p "$2"; tar -xf "$2.tar" -C "$2"'
LIMIT = "12M"
ROWS = 150
WORKS = {
    "sqlite": lambda source, target: ["python3", "-c", COMMITS, target + ".db", str(ROWS)],
    "tar": lambda source, target: ["sh", "-c", TAR, "sh", source, target],
    "rsync": lambda source, target: ["rsync", "-a", "--delete", "--fsync", source + "/", target + "/"],
    "git": lambda source, target: ["sh", "-c", GIT, "sh", source, target],
}
OTHER = 'while :; do dd if="$0" of=/dev/null bs=64k iflag=direct status=none; done'
# Within this nothing is stopped any more that its holder does not hold, in seconds.
PATIENCE = 2
# Within this all work is done, in seconds.
AT_MOST = 60
# One in so many rounds is polite, for so many seconds: a busy machine may suspend it for minutes.
POLITE, POLITE_FOR = 4, 5


def processes(mark):
    """The living processes whose environment has that line, with their names and arguments."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/environ", "rb") as environment:
                if mark not in environment.read().split(b"\0"):
                    continue
            with open(f"/proc/{pid}/cmdline", "rb") as words, open(f"/proc/{pid}/comm") as comm:
                yield int(pid), comm.read().strip(), words.read().split(b"\0")


def parent(pid):
    with open(f"/proc/{pid}/stat") as stat:
        return int(stat.read().rsplit(")", 1)[1].split()[1])


def plant(folder, seed):
    """A tree of files of many sizes, small ones above all."""
    generator = random.Random(seed)
    for number in range(120):
        path = os.path.join(folder, f"d{number % 7}", f"f{number}")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(generator.randbytes(generator.choice([0, 100, 3000, 5000, 20000, 100000])))
    with open(os.path.join(folder, "large"), "wb") as file:
        file.write(generator.randbytes(6 << 20))
    os.symlink("large", os.path.join(folder, "link"))


def contents(folder):
    """Name, kind and bytes of all below it, git's own folder left out."""
    found = {}
    for place, folders, files in os.walk(folder):
        if ".git" in folders:
            folders.remove(".git")
        for name in folders + files:
            path = os.path.join(place, name)
            if os.path.islink(path):
                told = os.readlink(path)
            elif os.path.isdir(path):
                told = "folder"
            else:
                with open(path, "rb") as file:
                    told = hashlib.sha256(file.read()).hexdigest()
            found[os.path.relpath(path, folder)] = told
    return found


class Round:
    def __init__(self, scene, number):
        self.scene, self.number = scene, number
        self.work = list(WORKS)[number % len(WORKS)]
        self.mechanism = scene.mechanisms[number // len(WORKS) % len(scene.mechanisms)]
        self.polite = random.randrange(POLITE) == 0
        self.target = os.path.join(scene.folder, f"target{number}")
        self.name = f"storm-{os.getpid()}-{number}"
        self.killed = collections.Counter()
        self.victims = set()

    def options(self):
        return ["--class", self.name, "--disk", LIMIT, "--mechanism", self.mechanism]

    def command(self):
        return WORKS[self.work](self.scene.source, self.target)

    def fail(self, why):
        sys.exit(f"failed: round {self.number}, {self.work} under {self.mechanism}, "
                 f"killed {dict(self.killed)}: {why}")

    def start(self):
        polite = ["--polite", "--no-probation"] if self.polite else []
        self.acknowledged = tempfile.TemporaryFile(dir=self.scene.folder)
        self.job = self.scene.start(["run", *self.options(), *polite, "--", *self.command()],
                                    stdout=self.acknowledged)
        self.other = self.scene.start(["run", *self.options(), "--", "sh", "-c", OTHER, self.scene.large])
        self.refresh = self.scene.start(["refresh", self.scene.aged])

    def candidates(self):
        """What may be killed now, by kind."""
        found = collections.defaultdict(list)
        for pid, comm, words in processes(self.scene.mark):
            if comm == "discnice-notify":
                found["supervisor"].append(pid)
            elif comm == "discnice" and words[1:2] == [b"policyd"]:
                found["policyd"].append(pid)
            elif comm == "discnice-polite":
                found["regulator"].append(pid)
        for kind, process in ("work", self.job), ("other", self.other), ("refresh", self.refresh):
            if process.poll() is None:
                found[kind].append(process.pid)
        if random.random() < 0.7:
            found.pop("work", None)
        return found

    def strike(self, kind=None):
        found = self.candidates()
        kind = kind or random.choice(sorted(found) or [None])
        if kind not in found:
            return
        victim = random.choice(found[kind])
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
            self.killed[kind] += 1
        self.check_stopped()

    def check_stopped(self):
        """Whatever is stopped is held by a holder that lives, and moves again and again."""
        if self.polite and not self.killed["regulator"]:
            return  # Its regulator suspends it, and says so to kills.py.
        pending = {pid for pid, _, _ in processes(self.scene.mark) if state(pid) in ("T", "t")}
        deadline = time.monotonic() + PATIENCE
        while pending:
            pending = {pid for pid in pending if state(pid) in ("T", "t")}
            if time.monotonic() > deadline:
                self.fail(f"left stopped: {pending}")
            time.sleep(0.005)

    def end(self):
        if self.polite:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.job.wait(POLITE_FOR)
            while "regulator" in self.candidates():
                self.strike("regulator")
        try:
            status = self.job.wait(AT_MOST)
        except subprocess.TimeoutExpired:
            self.fail(f"not done after {AT_MOST} s")
        if status and not self.killed["work"]:
            self.fail(f"the work ended with {status}")
        for process in self.other, self.refresh:
            process.kill()
            process.wait()
        self.end_all()

    def end_all(self):
        """No process of the round is left but policyd."""
        deadline = time.monotonic() + 5
        while True:
            left = [(pid, words) for pid, comm, words in processes(self.scene.mark)
                    if not (comm == "discnice" and words[1:2] == [b"policyd"])]
            for pid, words in left:
                if words[:1] in ([b"dd"], [b"sh"], [b"tar"], [b"git"], [b"find"], [b"cp"], [b"rsync"]):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
            if not left:
                return
            if time.monotonic() > deadline:
                self.fail(f"left running: {left}")
            time.sleep(0.01)

    def check(self):
        getattr(self, "check_" + self.work)()
        self.scene.check_aged(self)

    def check_sqlite(self):
        self.acknowledged.seek(0)
        lines = self.acknowledged.read().split(b"\n")[:-1]
        with contextlib.closing(sqlite3.connect(self.target + ".db")) as base:
            if base.execute("pragma integrity_check").fetchone()[0] != "ok":
                self.fail("integrity_check")
            rows = dict(base.execute("select number, text from rows")) if lines else {}
        if not self.killed["work"] and len(lines) != ROWS:
            self.fail(f"{len(lines)} of {ROWS} rows")
        for line in map(int, lines):
            if rows.get(line) != bytes([line % 251]) * 8192:
                self.fail(f"row {line} was acknowledged and is lost")

    def check_copy(self):
        if self.killed["work"] and subprocess.run(self.command()).returncode:
            self.fail("cannot be repeated")
        if contents(self.target) != self.scene.original:
            self.fail("the copy differs")

    check_tar = check_rsync = check_copy

    def check_git(self):
        if os.path.isdir(os.path.join(self.target, ".git", "objects")):
            told = subprocess.run(["git", "-C", self.target, "fsck", "--full"], capture_output=True, text=True)
            if told.returncode:
                self.fail(f"git fsck: {told.stdout}{told.stderr}")
        if not self.killed["work"] and contents(self.target) != self.scene.original:
            self.fail("the tree differs")

    def remove(self):
        self.acknowledged.close()
        for path in self.target, self.target + ".tar", *(self.target + ".db" + end for end in ("", "-wal", "-shm")):
            shutil.rmtree(path) if os.path.isdir(path) else (os.path.lexists(path) and os.unlink(path))
        self.scene.start(["class", "rm", "--force", self.name], stderr=subprocess.DEVNULL).wait()


class Scene:
    def __init__(self, folder, mechanisms):
        self.folder, self.mechanisms = folder, mechanisms
        # What is started bare inherits nothing; what is started here is found by this line.
        self.environment = dict(os.environ, XDG_RUNTIME_DIR=folder, XDG_STATE_HOME=folder, DISCNICE_STORM=folder)
        self.mark = f"DISCNICE_STORM={folder}".encode()
        self.source, self.aged = os.path.join(folder, "source"), os.path.join(folder, "aged")
        plant(self.source, 1)
        plant(self.aged, 2)
        self.large = os.path.join(self.source, "large")
        os.sync()
        self.original, self.young = contents(self.source), contents(self.aged)

    def start(self, words, **more):
        more.setdefault("stdout", subprocess.DEVNULL)
        return subprocess.Popen([DISCNICE, *words], env=self.environment, **more)

    def check_aged(self, round):
        if contents(self.aged) != self.young and self.recovered() != self.young:
            round.fail("the refreshed tree differs")

    def recovered(self):
        """What the tree is after a refresh that nothing kills."""
        if self.start(["refresh", self.aged]).wait():
            sys.exit("failed: refresh after a kill")
        return contents(self.aged)

    def end(self):
        """Ends the daemon, whose last user is gone."""
        for pid, _, _ in processes(self.mark):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--mechanism", default="preload,freeze,seccomp", help="comma-separated")
    parser.add_argument("--folder", default="/var/tmp")
    parser.add_argument("--seed", type=int, default=26)
    options = parser.parse_args()
    if not os.access(DISCNICE, os.X_OK):
        sys.exit(f"build first: {DISCNICE}")
    random.seed(options.seed)
    killed, whole = collections.Counter(), collections.Counter()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        scene = Scene(folder, options.mechanism.split(","))
        try:
            for number in range(options.rounds):
                round = Round(scene, number)
                round.start()
                for _ in range(random.randint(1, 3)):
                    time.sleep(random.uniform(0.02, 0.6))
                    round.strike()
                round.end()
                round.check()
                round.remove()
                killed.update(round.killed)
                print(f"\r{number + 1} of {options.rounds} rounds", end="", file=sys.stderr, flush=True)
                whole[f"{round.work} under {round.mechanism}"] += 1
            if scene.recovered() != scene.young:
                sys.exit("failed: the refreshed tree differs at the end")
        finally:
            scene.end()
    for what, times in sorted(whole.items()):
        print(f"{what}: {times} rounds, whole")
    print("killed: " + ", ".join(f"{times} {kind}" for kind, times in killed.most_common()))


if __name__ == "__main__":
    main()
