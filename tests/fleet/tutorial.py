#!/usr/bin/env python3
"""Does what "The first hour" of docs/fleet.md says, as it is written: `make fleet-tutorial`.

tutorial.py DISCNICE. A user without rights types the page's commands in a home of its own. Needs the superuser and redis-server.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import cluster
from cluster import QUIET, run, until

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "fleet.md")
USER = 65534
CAP, LEASE = 20 << 20, 5


class Home:
    def __init__(self, program):
        self.made = tempfile.mkdtemp(prefix="discnice-tutorial-", dir="/var/tmp")
        # The page's commands write there.
        self.root = "/var/tmp"
        run("mount", "--bind", self.made, self.root)
        self.settings = f"{self.root}/.config/discnice/config.toml"
        os.makedirs(os.path.dirname(self.settings))
        os.mkdir(f"{self.root}/run", 0o700)
        run("chown", "-R", f"{USER}:{USER}", self.root)
        self.told = open(f"{self.root}/told", "w+")
        self.environment = {"PATH": f"{os.path.dirname(program)}:{os.environ['PATH']}", "HOME": self.root, "XDG_RUNTIME_DIR": f"{self.root}/run"}

    def remove(self):
        run("umount", "--lazy", self.root)
        shutil.rmtree(self.made, ignore_errors=True)

    def type(self, line, **more):
        words = ["setpriv", "--reuid", str(USER), "--regid", str(USER), "--clear-groups", "sh", "-c", f"exec {line}"]
        return subprocess.Popen(words, env=self.environment, cwd=self.root, start_new_session=True, **{**QUIET, **more})

    def up(self, line):
        """Types the line that starts the server, and copies what it says into config.toml."""
        self.told.truncate(0)
        server = self.type(line, stdout=self.told)
        until("the server says how to change it", lambda: "To change it" in self.read())
        (section,) = re.findall(r"^\[class\.backup\]\nfleet = .*\n", self.read(), re.MULTILINE)
        with open(self.settings, "w") as file:
            file.write(section + section.replace("class.backup", "class.second"))
        return server

    def read(self):
        with open(self.told.name) as file:
            return file.read().replace("\0", "")

    def has(self, line):
        """Parts of the cap that `discnice fleet status` shows for each class of this machine, and all that it says."""
        said = self.type(line, stdout=subprocess.PIPE).communicate(timeout=20)[0].decode()
        units = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}
        found = re.findall(r"this machine may move ([\d.]+) (\w+)/s", said)
        return [float(number) * units[unit] / CAP for number, unit in found], said


def commands():
    """What the page has the reader type."""
    with open(PAGE) as file:
        section = file.read().split("## The first hour\n")[1].split("\n## ")[0]
    found = re.findall(r"^\$ (.*?)(?: +# .*)?$", section, re.MULTILINE)
    if len(found) != 4 or not found[0].startswith("discnice fleet up"):
        sys.exit(f"the page has other commands than this program: {found}")
    return found


def end(server):
    """Types ^C."""
    os.killpg(server.pid, signal.SIGINT)
    if server.wait(10) != 0:
        sys.exit(f"the server ended with {server.returncode}")


def follow(home):
    up, first, second, status = commands()

    def shares(what, is_so, seconds=20):
        begun = time.monotonic()
        until(what, lambda: is_so(*home.has(status)), seconds, lambda: home.has(status))
        print(f"ok    {what}: {', '.join(f'{part:.3f}' for part in home.has(status)[0])} of the cap, after {time.monotonic() - begun:.1f} s", flush=True)

    half = lambda parts, _: len(parts) == 2 and all(0.4 < part <= 0.55 for part in parts)
    server = home.up(up)
    home.type(first)
    shares("one machine has what there is", lambda parts, _: len(parts) > 0 and max(parts) >= 0.85)
    home.type(second)
    shares("each falls to half when the other starts", half, 2 * LEASE)
    end(server)
    shares("after a lease each has its floor, and is told why", lambda parts, said: max(parts) < 0.01 and "cannot read" in said)
    server = home.up(up)
    shares("they have their shares back", half)
    end(server)


def main():
    cluster.isolate(["redis-server"])
    run("ip", "link", "set", "lo", "up")
    home = Home(os.path.abspath(sys.argv[1]))
    try:
        follow(home)
    finally:
        home.remove()


if __name__ == "__main__":
    main()
