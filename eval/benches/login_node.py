#!/usr/bin/env python3
"""What 49 users of a login node wait for `ls` while one runs away, with and without the site's limits: `make login-node`.

    python3 eval/benches/login_node.py [--files N] [--seconds S] [--rounds N] [--profile hdd|ssd|nfs] [--jobs find,tar,rm] [--site FILE]

The homes of 50 accounts lie on an emulated disk (`discnice-eval disk up`), in namespaces with an /etc of their own: the accounts,
/etc/discnice/config.toml, and the script that is shipped in /etc/profile.d. Each user logs in by `su -l` at a terminal.
49 of them type `ls -l` for one of their folders, which nothing has read since the disk was mounted, and again THINK seconds after they
had the prompt back; what is measured is the time from typing to the prompt. One runs away: find, tar or rm -r over a tree of N files.
Each row has the disk mounted and everyone logged in anew; rounds are interleaved. "nothing" and "alone" are without the site's settings.

Needs the superuser, a release build and memory for the disk (2 GB for 1,000,000 files). Leaves nothing behind.
"""

import argparse
import json
import os
import pty
import random
import select
import selectors
import shutil
import socket
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
RELEASE = os.path.join(os.environ.get("CARGO_TARGET_DIR", os.path.join(HERE, "../..", "target")), "release")
PROFILE_D = os.path.join(HERE, "../..", "packaging", "profile.d", "discnice.sh")
MOUNT = "/mnt/discnice-login"
USERS = [f"login{number:02}" for number in range(50)]
FOLDERS, IN_A_FOLDER = 10, 100
THINK, HEAD_START = 5.0, 2.0
FIRST = 59000
PROMPT = b"ready> "
JOBS = {
    "find": "find ~/tree -type f -size +1M",
    "tar": "tar -cf - -C ~ tree | cat >/dev/null",
    "rm": "rm -r ~/tree",
}
SITE = """locked = ["class.session"]
[class.session]
disk = "20M"
meta-ops = 2000
"""


def run(*words):
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def disk_up(profile, files):
    """Makes the emulated disk, and returns its device, which is mounted in namespaces only: a mount elsewhere would keep the cache."""
    run(f"{RELEASE}/discnice-eval", "disk", "up", "--profile", profile, "--size", f"{(files + 200_000) * 4}K", "--mount", MOUNT)
    device = subprocess.run(["findmnt", "-n", "-o", "SOURCE", MOUNT], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    run("umount", MOUNT)
    # With an inode for each 4 KiB instead of 16, so that a disk in memory has enough of them.
    run("mkfs.ext4", "-q", "-F", "-m", "0", "-i", "4096", "-E", "lazy_itable_init=1,lazy_journal_init=1", device)
    return device


def fill(device, files):
    """Makes homes and the tree, as if they had always been there: run within namespaces."""
    run("mount", "-o", "noinit_itable", device, "/home")
    ask_disk("hurry")
    for number, user in enumerate(USERS):
        for folder in range(FOLDERS):
            make(f"/home/{user}/d{folder}", IN_A_FOLDER, b"")
        with open(f"/home/{user}/.bash_profile", "w") as file:
            file.write(f"PS1='{PROMPT.decode()}'\n")
        if number == 0:
            for part in range(files // 1000):
                # One file of ten has contents.
                make(f"/home/{user}/tree/{part // 100}/{part}", 1000, b"x" * 4096)
        run("chown", "-R", f"{FIRST + number}:{FIRST + number}", f"/home/{user}")
    run("umount", "/home")
    ask_disk("pace")


def ask_disk(what):
    with socket.socket(socket.AF_UNIX) as asked:
        asked.connect("/run/discnice-eval/control")
        asked.sendall(json.dumps(what).encode() + b"\n")
        asked.recv(4096)


def make(folder, count, contents):
    os.makedirs(folder, exist_ok=True)
    at = os.open(folder, os.O_RDONLY)
    for number in range(count):
        file = os.open(f"f{number}", os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=at)
        if contents and number % 10 == 0:
            os.write(file, contents)
        os.close(file)
    os.close(at)


class Terminal:
    """A login of a user's."""

    def __init__(self, user):
        self.told, self.folder = b"", 0
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            os.execvp("su", ["su", "-l", user])

    def type(self, line):
        os.write(self.terminal, line.encode() + b"\n")

    def hear(self):
        """Reads what is shown, and returns whether the prompt is back."""
        self.told = (self.told + os.read(self.terminal, 1 << 16))[-4000:]
        if not self.told.endswith(PROMPT):
            return False
        self.told = b""
        return True

    def answer(self, line):
        """What a command shows."""
        self.type(line)
        shown = b""
        while not shown.endswith(PROMPT):
            shown += os.read(self.terminal, 1 << 16)
        return shown.replace(line.encode(), b"")

    def is_back(self):
        """Whether the prompt is there by now."""
        return bool(select.select([self.terminal], [], [], 0)[0]) and self.hear()

    def list(self):
        self.type(f"ls -l d{self.folder % FOLDERS}")
        self.folder += 1


def log_in(users):
    """Terminals of all users, which are at the prompt."""
    terminals = [Terminal(user) for user in users]
    for terminal in terminals:
        deadline = time.monotonic() + 120
        while not terminal.hear():
            if time.monotonic() > deadline:
                sys.exit(f"no prompt: {terminal.told.decode(errors='replace')}")
    return terminals


def watch(terminals, seconds):
    """How long each `ls` took that was typed in this time."""
    selector, took, asked = selectors.DefaultSelector(), [], {}
    end = time.monotonic() + seconds
    due = [(time.monotonic() + random.random() * THINK, terminal) for terminal in terminals]
    for terminal in terminals:
        selector.register(terminal.terminal, selectors.EVENT_READ, terminal)
    while asked or time.monotonic() < end:
        now = time.monotonic()
        for when, terminal in [one for one in due if one[0] <= now < end]:
            due.remove((when, terminal))
            asked[terminal] = now
            terminal.list()
        for key, _ in selector.select(0.005):
            if key.data.hear() and key.data in asked:
                took.append(time.monotonic() - asked.pop(key.data))
                due.append((time.monotonic() + THINK, key.data))
        if now > end + 60:
            # What has not ended by then is at least that long.
            took += [now - begun for begun in asked.values()]
            break
    return took


def lay(device, site):
    """Gives this process, in namespaces of its own, the homes, with a cold cache, the /etc and the programs of a login node."""
    run("mount", "-o", "noinit_itable", device, "/home")
    run("mount", "-t", "tmpfs", "none", "/mnt")
    run("mkdir", "/mnt/upper", "/mnt/work", "/mnt/bin")
    run("mount", "-t", "overlay", "none", "-o", "lowerdir=/etc,upperdir=/mnt/upper,workdir=/mnt/work", "/etc")
    for name in ("discnice", "libdiscnice.so"):
        shutil.copy2(f"{RELEASE}/{name}", f"/mnt/bin/{name}")
    run("mount", "--bind", "/mnt/bin", "/usr/local/bin")
    for number, user in enumerate(USERS):
        run("useradd", "--no-log-init", "--no-create-home", "-d", f"/home/{user}", "-s", "/bin/bash", "-u", str(FIRST + number), user)
    if site:
        os.makedirs("/etc/discnice")
        with open("/etc/discnice/config.toml", "w") as file:
            file.write(site)
        shutil.copy(PROFILE_D, "/etc/profile.d/discnice.sh")


def one_row(device, job, site, seconds):
    """Prints what is seen on the login node, as JSON: run within namespaces."""
    lay(device, site)
    os.environ["TERM"] = "dumb"
    runaway, *others = log_in(USERS)
    if site and b"session" not in runaway.answer("echo $DISCNICE_SESSION"):
        sys.exit("the sessions are no class")
    if job:
        runaway.type(f"{JOBS[job]} >/dev/null 2>&1")
        time.sleep(HEAD_START)
    took = watch(others, seconds)
    shown = b""
    if site:
        shown = subprocess.run(["su", USERS[0], "-c", "discnice status"], capture_output=True, check=False).stdout
    print(json.dumps({"took": took, "ended": bool(job) and runaway.is_back(), "status": shown.decode()}))


def within(what, *arguments):
    """What `fill` or `one_row` prints in namespaces that end with it."""
    words = ["unshare", "--mount", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, os.path.abspath(__file__)]
    words += ["--within", json.dumps([what, *arguments])]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, timeout=1000, check=True)
    # What was mounted there is not at once gone.
    time.sleep(1)
    return done.stdout


def show(job, treatment, took, note):
    took = sorted(took)
    p50, p99 = (took[len(took) * part // 100] for part in (50, 99))
    print(f"{job or '-':5} {treatment:9} p50 {p50 * 1e3:6.0f} ms, p99 {p99 * 1e3:6.0f} ms, longest {took[-1] * 1e3:6.0f} ms, {len(took)} ls, {note}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--profile", default="hdd")
    parser.add_argument("--jobs", default="find,tar,rm")
    parser.add_argument("--site", help="a file instead of the settings above")
    parser.add_argument("--status", action="store_true", help="show what the runaway sees, too")
    parser.add_argument("--within", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("login_node.py needs the superuser")
    if options.within:
        what, *arguments = json.loads(options.within)
        return {"fill": fill, "one_row": one_row}[what](*arguments)
    site = open(options.site).read() if options.site else SITE
    # What is limited comes first: rm leaves more of the tree.
    rows = [(None, "alone", None), (None, "discnice", site)]
    rows += [(job, *treatment) for job in options.jobs.split(",") for treatment in (("discnice", site), ("nothing", None))]
    try:
        device = disk_up(options.profile, options.files)
        within("fill", device, options.files)
        print(f"{options.profile}, a tree of {options.files} files, one ls per user every {THINK:.0f} s; the site's settings:\n{site}", flush=True)
        seen = {}
        for number in range(options.rounds):
            for job, treatment, settings in rows:
                row = json.loads(within("one_row", device, job, settings, options.seconds).splitlines()[-1])
                seen.setdefault((job, treatment), []).extend(row["took"])
                show(job, treatment, row["took"], f"round {number + 1}" + (", the job ended before" if row["ended"] else ""))
                if options.status:
                    print(row["status"])
        for (job, treatment), took in seen.items():
            show(job, treatment, took, "all rounds")
    finally:
        run(f"{RELEASE}/discnice-eval", "disk", "down", "--force")
    return 0


if __name__ == "__main__":
    sys.exit(main())
