#!/usr/bin/env python3
"""What does it cost to watch a crowd that does nothing?

    python3 eval/benches/crowd.py [--processes N] [--seconds S]

Attaches a process with its descendants, who all sleep, and prints how much of a processor policyd takes for looking at
them. Needs a release build; no rights. Run it as a user without other limited jobs, which its policyd would watch, too.
"""

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time

from kills import DISCNICE, policyds, wait_for

CROWD = """
import os, sys, time
for _ in range(int(sys.argv[1]) - 1):
    if os.fork() == 0:
        break
while True:
    time.sleep(1000)
"""
# Looks at what moves nothing are the further apart the longer that lasts, for a minute.
SETTLE = 60


def parent(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as stat:
        return int(stat.read().rsplit(")", 1)[1].split()[1])
    return None


def policyd(folder):
    """The process id of the policyd whose runtime directory this is; None without one. Of its two processes, the child watches."""
    found = list(policyds(folder))
    return next((pid for pid in found if parent(pid) in found), next(iter(found), None))


def processor(folder):
    """Seconds of a processor that policyd has had; None without one."""
    pid = policyd(folder)
    if pid is None:
        return None
    with open(f"/proc/{pid}/schedstat") as stat:
        return int(stat.read().split()[0]) / 1e9


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--settle", type=float, default=SETTLE)
    parser.add_argument("--folder", default="/var/tmp")
    options = parser.parse_args()
    if not os.access(DISCNICE, os.X_OK):
        sys.exit(f"build first: {DISCNICE}")
    name = f"crowd-{os.getpid()}"
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        environment = dict(os.environ, XDG_RUNTIME_DIR=folder)
        crowd = subprocess.Popen(["python3", "-c", CROWD, str(options.processes)], start_new_session=True)
        try:
            time.sleep(1 + options.processes / 500)
            words = ["attach", "--class", name, "--disk", "5M", "--background", str(crowd.pid)]
            subprocess.run([DISCNICE, *words], env=environment, check=True, stderr=subprocess.DEVNULL)
            time.sleep(options.settle)
            begun, before = time.monotonic(), wait_for("no policyd", lambda: processor(folder))
            time.sleep(options.seconds)
            used = processor(folder) - before
            print(f"{options.processes} processes: {100 * used / (time.monotonic() - begun):.2f} % of a processor")
        finally:
            os.killpg(crowd.pid, signal.SIGKILL)
            crowd.wait()
            subprocess.run([DISCNICE, "class", "rm", "--force", name], env=environment, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
