#!/usr/bin/env python3
"""Attaching to what runs already: how soon is it at the limit, and how soon free again?

    python3 eval/benches/attach.py [--programs dd,rsync,restic,postgres] [--limit 5] [--rounds 1] [--folder DIR]

Each program reads or writes at full speed; then `discnice attach --background` limits it, and 5 s later `detach` lets it
go. Prints, from the accounts of its processes (/proc/PID/io), the rate before, in the first 0.3 s after the command has
returned, from then on, and from 0.3 s after `detach`; in MiB/s. For the first 0.3 s it prints as well what the processes
dirtied or read (`dirtied`: also what was deleted since and is never written, as the packs of restic, 16 MiB at once), and
what the device of the folder moved (`disk`), whoever caused it: that counts, if nobody else uses it. What was dirtied before
is in the account already, and may be written then. Of several rounds, each in turn with the other programs, the medians come
last.

Needs a release build; no rights (PostgreSQL refuses to run as root). Programs that are not installed are skipped, visibly.
"""

import argparse
import glob
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import rates
from kills import DISCNICE, wait_for
from shared import cold

MIB = 1 << 20
SOON, HELD, FREE = 0.3, 5, 3


def dirtied(pid):
    read, written, _ = rates.counters(pid)
    return read + written


def moved(root, account=rates.account):
    return sum(map(account, rates.tree(root)))


def rates_of(counts, seconds):
    """MiB/s of each over so long; None of what ended meanwhile."""
    begun, before = time.monotonic(), [count() for count in counts]
    time.sleep(seconds)
    after, elapsed = [count() for count in counts], time.monotonic() - begun
    return [(end - start) / MIB / elapsed if end >= start > 0 else None for start, end in zip(before, after)]


def rate(root, seconds):
    return rates_of([lambda: moved(root)], seconds)[0]


def data(folder, mebibytes):
    path = os.path.join(folder, "data")
    with open(path, "wb") as out:
        for _ in range(mebibytes):
            out.write(os.urandom(MIB))
    cold(path)
    return path


def dd(folder, environment):
    path = data(folder, 64)
    loop = f"while dd if={path} of=/dev/null bs=64k iflag=direct status=none; do :; done"
    return subprocess.Popen(["sh", "-c", loop], start_new_session=True), None


def rsync(folder, environment):
    path = data(folder, 1500)
    return subprocess.Popen(["rsync", "-a", path, os.path.join(folder, "copy")], start_new_session=True), None


def restic(folder, environment):
    path, repository = data(folder, 1500), os.path.join(folder, "repository")
    environment = dict(environment, RESTIC_PASSWORD="x", RESTIC_CACHE_DIR=os.path.join(folder, "cache"), TMPDIR=folder)
    subprocess.run(["restic", "init", "-q", "-r", repository], env=environment, check=True)
    words = ["restic", "-q", "-r", repository, "backup", path]
    return subprocess.Popen(words, env=environment, start_new_session=True), None


def postgres(folder, environment):
    """A backend that fills a table; not the server, which is its parent."""
    programs, base = max(glob.glob("/usr/lib/postgresql/*/bin")), os.path.join(folder, "base")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run([f"{programs}/initdb", "-D", base, "-A", "trust", "-U", "bench"], check=True, **quiet)
    server = subprocess.Popen([f"{programs}/postgres", "-D", base, "-k", folder, "-c", "listen_addresses=", "-c",
                               "shared_buffers=1MB", "-c", "autovacuum=off"], start_new_session=True, **quiet)
    wait_for("no server", lambda: os.path.exists(f"{folder}/.s.PGSQL.5432"))
    query = "create unlogged table t as select n, repeat(md5(n::text), 30) from generate_series(1, 100000000) n"
    subprocess.Popen([f"{programs}/psql", "-h", folder, "-U", "bench", "-c", query, "postgres"], start_new_session=True, **quiet)

    def backend():
        for pid in rates.tree(server.pid):
            with open(f"/proc/{pid}/cmdline", "rb") as words:
                if b"CREATE" in words.read():
                    return pid
        return None
    return server, wait_for("no backend", backend)


PROGRAMS = {"dd": dd, "rsync": rsync, "restic": restic, "postgres": postgres}


def measure(name, folder, environment, limit):
    process, pid = PROGRAMS[name](folder, environment)
    pid = pid or process.pid
    try:
        wait_for("it does nothing", lambda: moved(pid) > 8 * MIB)
        before = rate(pid, 0.5)
        title = f"attach-{os.getpid()}-{name}"
        subprocess.run([DISCNICE, "attach", "--class", title, "--disk", f"{limit}M", "--background", str(pid)],
                       env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        number = os.stat(folder).st_dev
        disk = f"/sys/dev/block/{os.major(number)}:{os.minor(number)}"
        counts = [lambda: moved(pid), lambda: moved(pid, dirtied), lambda: sum(rates.device(disk))]
        soon, held = rates_of(counts, SOON), rate(pid, HELD)
        subprocess.run([DISCNICE, "detach", str(pid)], env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(SOON)
        after = rate(pid, FREE)
        return before, *soon, held, after
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def row(name, seen):
    shown = ["ended" if one is None else f"{one:.1f}" for one in seen]
    print(f"{name:<10} " + " ".join(f"{one:>9}" for one in shown), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", default=",".join(PROGRAMS), help="comma-separated")
    parser.add_argument("--limit", type=int, default=5, help="MiB/s")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--folder", default="/var/tmp")
    options = parser.parse_args()
    if not os.access(DISCNICE, os.X_OK):
        sys.exit(f"build first: {DISCNICE}")
    titles = ["before", "first .3s", "dirtied", "disk", f"at {options.limit}M", "detached"]
    print(f"{'program':<10} " + " ".join(f"{title:>9}" for title in titles) + "  MiB/s")
    found = {}
    for _ in range(options.rounds):
        for name in options.programs.split(","):
            if not (shutil.which(name) or name == "postgres" and glob.glob("/usr/lib/postgresql/*/bin")):
                print(f"{name:<10} not installed")
                continue
            with tempfile.TemporaryDirectory(dir=options.folder, ignore_cleanup_errors=True) as folder:
                runtime = os.path.join(folder, "run")
                os.makedirs(runtime, mode=0o700)
                environment = dict(os.environ, XDG_RUNTIME_DIR=runtime, XDG_STATE_HOME=runtime)
                seen = measure(name, folder, environment, options.limit)
            row(name, seen)
            found.setdefault(name, []).append(seen)
    if options.rounds > 1:
        print("medians")
        for name, rounds in found.items():
            known = [[one for one in column if one is not None] for column in zip(*rounds)]
            row(name, [statistics.median(column) if column else None for column in known])


if __name__ == "__main__":
    main()
