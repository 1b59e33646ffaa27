#!/usr/bin/env python3
"""Whether each place that names what a job waits for names it rightly, for six real jobs.

    python3 eval/benches/named.py [--folder DIR] [--jobs restic,borg,rsync,gc,npm,cargo]

Each job runs twice: held to a rate of the disk while nobody else uses it, and without any option beside dd, which reads the
same disk past the cache. What `run --summary`, `status`, `explain` and `top` say meanwhile is compared with what was done to
the job. `explain` and `status` are asked while the class is ahead of what it may have moved; a moment at which the job does
not wait has no reason and does not count. Prints a line for each job and each treatment, with what `explain` said when it did
not name what was done to the job, and fails if one of them is wrong.
Needs a release build, and restic, borg, rsync, git, npm and cargo.
"""

import argparse
import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TARGET = os.environ.get("CARGO_TARGET_DIR", os.path.join(HERE, "../..", "target"))
DISCNICE = os.path.join(TARGET, "release", "discnice")
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
LONGEST = 20

# What each treatment is told of: options, in the summary, in status, in explain, in the column WAIT of top.
TREATMENTS = {
    "--disk 2M": (["--disk", "2M"], "for its limit (disk", "total", "disk: 2 MiB/s", "disk"),
    "beside dd": ([], "for others on its disks (most: dd", "others", "dd (", "give"),
}


def files(folder, count, size):
    """Makes files that do not compress, in a directory for each hundred."""
    for number in range(count):
        path = os.path.join(folder, str(number // 100), str(number))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(os.urandom(size))


def out_of_cache(folder):
    """Writes the files below a folder to the disk and drops them from the cache."""
    for path, _, names in os.walk(folder):
        for name in names:
            if os.path.islink(os.path.join(path, name)):
                continue
            file = os.open(os.path.join(path, name), os.O_RDONLY)
            os.fsync(file)
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(file)


class Jobs:
    """The jobs, by name: each prepares a folder and returns its command."""

    def __init__(self, folder):
        self.folder = folder
        self.environment = {
            **os.environ,
            "RESTIC_PASSWORD": "x",
            "BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK": "yes",
            "npm_config_cache": os.path.join(folder, "npm"),
            "npm_config_update_notifier": "false",
        }

    def prepare(self, *words, **options):
        subprocess.run(words, check=True, env=self.environment, **QUIET, **options)

    def tree(self, folder):
        tree = os.path.join(folder, "tree")
        files(tree, 400, 256 << 10)
        out_of_cache(tree)
        return tree

    def restic(self, folder):
        self.prepare("restic", "init", "-r", f"{folder}/repository")
        return ["restic", "backup", "-r", f"{folder}/repository", "--no-cache", self.tree(folder)]

    def borg(self, folder):
        self.prepare("borg", "init", "-e", "none", f"{folder}/repository")
        return ["borg", "create", f"{folder}/repository::one", self.tree(folder)]

    def rsync(self, folder):
        return ["rsync", "-a", self.tree(folder) + "/", f"{folder}/copy"]

    def gc(self, folder):
        files(f"{folder}/tree", 800, 64 << 10)
        git = ["git", "-C", f"{folder}/tree", "-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "gc.auto=0"]
        for words in ["init -q", "add .", "commit -qm one"]:
            self.prepare(*git, *words.split())
        out_of_cache(f"{folder}/tree")
        return [*git, "gc", "--aggressive", "--prune=now"]

    def npm(self, folder):
        files(f"{folder}/module/data", 600, 64 << 10)
        with open(f"{folder}/module/package.json", "w", encoding="utf-8") as file:
            json.dump({"name": "module", "version": "1.0.0"}, file)
        self.prepare("npm", "pack", "--pack-destination", folder, f"{folder}/module")
        os.mkdir(f"{folder}/app")
        out_of_cache(folder)
        return ["npm", "install", "--prefix", f"{folder}/app", "--offline", "--no-audit", f"{folder}/module-1.0.0.tgz"]

    def cargo(self, folder):
        os.makedirs(f"{folder}/crate/src")
        with open(f"{folder}/crate/Cargo.toml", "w", encoding="utf-8") as file:
            file.write('[package]\nname = "made"\nversion = "0.1.0"\nedition = "2021"\n[workspace]\n')
        with open(f"{folder}/crate/src/main.rs", "w", encoding="utf-8") as file:
            for number in range(3000):
                file.write(f"#[derive(Debug, Clone)] pub struct S{number} {{ a: Vec<u64>, b: String }}\n")
            file.write("fn main() {}\n")
        return ["cargo", "build", "--quiet", "--offline", "--manifest-path", f"{folder}/crate/Cargo.toml", "--target-dir", f"{folder}/target"]


class Screen:
    """`top` on a terminal of its own, of which everything that it draws is kept."""

    def __init__(self):
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            os.environ["TERM"] = "xterm"
            os.execv(DISCNICE, [DISCNICE, "top"])
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self.drawn = b""

    def read(self):
        while select.select([self.terminal], [], [], 0)[0]:
            try:
                self.drawn += os.read(self.terminal, 1 << 16)
            except OSError:
                return

    def close(self):
        """Ends it; returns the text that it drew, without what moves the cursor."""
        os.write(self.terminal, b"q")
        deadline = time.time() + 2
        while os.waitpid(self.process, os.WNOHANG)[0] == 0 and time.time() < deadline:
            self.read()
            time.sleep(0.02)
        self.read()
        os.close(self.terminal)
        return re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b" ", self.drawn).decode(errors="replace")


def asked(*words):
    """What a command of ours prints."""
    return subprocess.run([DISCNICE, *words], capture_output=True, text=True, check=False).stdout


def told(name):
    """What status says that the class waits for, and what explain says; None while it does not wait."""
    try:
        classes = json.loads(asked("status", "--json"))["classes"]
    except json.JSONDecodeError:
        return None
    found = [one for one in classes if one["name"] == name]
    if not found or found[0]["waits_for"] is None:
        return None
    return found[0]["waits_for"], asked("explain", name)


def watch(job, name):
    """Asks while the job runs; returns what was told at each moment at which it waited, and what top drew."""
    moments, screen, deadline = [], Screen(), time.time() + LONGEST
    while job.poll() is None and time.time() < deadline:
        screen.read()
        moment = told(name)
        moments += [moment] if moment else []
        time.sleep(0.1)
    return moments, screen.close()


class Others:
    """dd, which reads a file past the cache again and again if a treatment asks for it."""

    def __init__(self, data, reads):
        loop = f"while :; do dd if={data} of=/dev/null bs=1M iflag=direct 2>/dev/null; done"
        self.process = subprocess.Popen(["sh", "-c", loop], start_new_session=True, **QUIET) if reads else None

    def end(self):
        if self.process:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None


def held(jobs, kind, treatment, others):
    """Runs a job under a treatment; returns the parts of the row, whether all were right, and what explain said else."""
    options, in_summary, in_status, in_explain, in_top = TREATMENTS[treatment]
    folder = tempfile.mkdtemp(dir=jobs.folder)
    command, name = getattr(jobs, kind)(folder), f"named-{os.getpid()}"
    run = [DISCNICE, "run", "--summary", "--class", name, *options, "--", *command]
    job = subprocess.Popen(run, env=jobs.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    moments, drawn = watch(job, name)
    # What is known by now is enough.
    others.end()
    asked("class", "set", name, "--disk", "unlimited")
    complaint = job.communicate()[1]
    asked("class", "rm", name)
    shutil.rmtree(folder)
    waited = [line for line in complaint.splitlines() if line.startswith("discnice: waited ")]
    longest = waited[0].split("): ", 1)[1] if waited else "nothing"
    # The first one is what it waited for longest.
    summary = re.sub(r"^[0-9.]+ s ", "", longest).startswith(in_summary)
    status = sum(moment[0] == in_status for moment in moments)
    explain = sum(in_explain in moment[1] for moment in moments)
    top = re.search(rf"\b{in_top}\b", drawn) is not None
    enough = 0.8 * len(moments)
    right = job.returncode == 0 and summary and status >= enough and explain >= enough and len(moments) > 2 and top
    said_else = {moment[1].strip() for moment in moments if in_explain not in moment[1]}
    return [longest, f"{status}/{len(moments)}", f"{explain}/{len(moments)}", "yes" if top else "no"], right, said_else


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", default="/var/tmp")
    parser.add_argument("--jobs", default="restic,borg,rsync,gc,npm,cargo")
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        jobs = Jobs(folder)
        data = os.path.join(folder, "data")
        with open(data, "wb") as file:
            file.write(os.urandom(64 << 20))
        print(f"{'job':8}{'treatment':11}{'status':>8}{'explain':>9}{'top':>5}  summary")
        for kind in options.jobs.split(","):
            for treatment in TREATMENTS:
                others = Others(data, treatment == "beside dd")
                try:
                    (summary, status, explain, top), right, said_else = held(jobs, kind, treatment, others)
                finally:
                    others.end()
                wrong += not right
                print(f"{kind:8}{treatment:11}{status:>8}{explain:>9}{top:>5}  {summary}{'' if right else '  WRONG'}", flush=True)
                for text in sorted(said_else):
                    print("    explain said: " + text.replace("\n", "\n                  "), flush=True)
    sys.exit(wrong != 0)


if __name__ == "__main__":
    main()
