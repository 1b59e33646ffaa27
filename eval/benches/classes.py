#!/usr/bin/env python3
"""What do many classes cost, and what does policyd cost a short command?

    python3 eval/benches/classes.py crowd [--classes N] [--members M] [--seconds S]
    python3 eval/benches/classes.py start [--rounds N]

crowd   N classes with M sleeping processes each, all limited. Prints how long `discnice status` takes, how much
        of a processor and of memory policyd takes, and what a cached read of 4 KiB costs in one of those classes,
        beside the same in a class that is alone.
start   `discnice run --disk 5M -- true` with policyd as it is found by most commands (not there, or there and
        idle), beside one that no policyd watches and the bare command: wall time, and the processor time of the
        user's policyd for each.

Needs a release build and, for the reads, a C compiler; no rights. Run it as a user without other limited jobs,
which its policyd would watch, too.
"""

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from crowd import SETTLE, policyd, processor
from kills import DISCNICE, wait_for

# What one class runs: so many sleepers, of whom the shell is one.
SLEEPERS = 'i=1; while [ $i -lt $0 ]; do sleep 10000 & i=$((i+1)); done; exec sleep 10000'
READS = r"""
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static char data[4096];
int main(int count, char **words) {
    int fd = open(words[1], O_RDONLY);
    struct timespec a, b;
    double best = 1e18;
    for (int round = 0; round < 20; round++) {
        clock_gettime(CLOCK_MONOTONIC, &a);
        for (int i = 0; i < 20000; i++) if (pread(fd, data, sizeof data, 0) < 0) return 1;
        clock_gettime(CLOCK_MONOTONIC, &b);
        double ns = ((b.tv_sec - a.tv_sec) * 1e9 + b.tv_nsec - a.tv_nsec) / 20000;
        if (ns < best) best = ns;
    }
    printf("%.1f\n", best);
    return 0;
}
"""


def under(environment, name, words, **options):
    named = ["--class", name] if name else []
    return subprocess.Popen([DISCNICE, "run", *named, "--disk", "5M", "--", *words], env=environment,
                            stderr=subprocess.DEVNULL, **options)


def memory(folder):
    """What policyd has in memory: all, and what of it is its own, in KiB."""
    with open(f"/proc/{policyd(folder)}/status") as status:
        fields = dict(line.split(":", 1) for line in status)
    return [int(fields[name].split()[0]) for name in ("VmRSS", "RssAnon")]


def is_born(process):
    """Whether the shell has started all its sleepers and become the last one."""
    with open(f"/proc/{process.pid}/comm") as comm:
        return comm.read().strip() == "sleep"


def timed(words, environment):
    begun = time.monotonic()
    subprocess.run(words, env=environment, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - begun


def reads(environment, folder, name):
    words = [DISCNICE, "run", "--class", name, "--disk", "5M", "--", f"{folder}/reads", f"{folder}/data"]
    run = subprocess.run(words, env=environment, check=True, capture_output=True, text=True)
    return float(run.stdout)


def prepare_reads(folder):
    with open(f"{folder}/data", "wb") as out:
        out.write(bytes(4096))
    with open(f"{folder}/reads.c", "w") as out:
        out.write(READS)
    subprocess.run(["cc", "-O2", "-o", f"{folder}/reads", f"{folder}/reads.c"], check=True)


def crowd(options, folder, environment):
    prepare_reads(folder)
    names = [f"crowd-{os.getpid()}-{number}" for number in range(options.classes)]
    alone = f"crowd-{os.getpid()}-alone"
    before = min(reads(environment, folder, alone) for _ in range(5))
    started = []
    try:
        for name in names:
            words = ["sh", "-c", SLEEPERS, str(options.members)]
            started.append(under(environment, name, words, start_new_session=True))
            wait_for("a class was not born", lambda: is_born(started[-1]))
        time.sleep(options.settle)
        begun, used = time.monotonic(), processor(folder)
        time.sleep(options.seconds)
        used = (processor(folder) - used) / (time.monotonic() - begun)
        whole, own = memory(folder)
        print(f"{options.classes} classes, {options.classes * options.members} processes")
        print(f"policyd: {100 * used:.2f} % of a processor, {whole / 1024:.1f} MiB, {own / 1024:.1f} of it its own")
        for words in (["status"], ["status", "--json"]):
            times = [timed([DISCNICE, *words], environment) for _ in range(options.rounds)]
            print(f"{' '.join(words)}: {1e3 * statistics.median(times):.1f} ms, {1e3 * min(times):.1f} at least")
        after = min(reads(environment, folder, names[0]) for _ in range(5))
        print(f"a cached read: {before:.0f} ns in a class that is alone, {after:.0f} ns in one of the crowd")
    finally:
        for process in started:
            os.killpg(process.pid, signal.SIGKILL)
        for process in started:
            process.wait()
        for name in [*names, alone]:
            subprocess.run([DISCNICE, "class", "rm", "--force", name], env=environment,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def start(options, folder, environment):
    limited = [DISCNICE, "run", "--disk", "5M"]
    ways = {
        "bare": ["true"],
        "unwatched": [*limited, "--mechanism", "preload", "--", "true"],
        "policyd idle": [*limited, "--", "true"],
        "policyd not there": [*limited, "--", "true"],
    }
    times, used = {way: [] for way in ways}, {way: [] for way in ways}
    for _ in range(options.rounds):
        for way, words in ways.items():
            if way == "policyd not there":
                end(folder)
            before = processor(folder) or 0
            times[way].append(timed(words, environment))
            # The class of a command that has ended is still watched for a second.
            time.sleep(1.3)
            used[way].append((processor(folder) or 0) - before)
    for way in ways:
        print(f"{way:<18} {1e3 * statistics.median(times[way]):6.2f} ms ({1e3 * min(times[way]):.2f} at least), "
              f"policyd {1e3 * statistics.median(used[way]):6.2f} ms of a processor")
    end(folder)


def end(folder):
    """Ends policyd, which ends itself a minute later otherwise."""
    pid = policyd(folder)
    if pid is not None:
        os.kill(pid, signal.SIGTERM)
        while policyd(folder) is not None:
            time.sleep(0.01)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["crowd", "start"])
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--members", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--settle", type=float, default=SETTLE)
    parser.add_argument("--folder", default="/var/tmp")
    options = parser.parse_args()
    if not os.access(DISCNICE, os.X_OK):
        sys.exit(f"build first: {DISCNICE}")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        environment = dict(os.environ, XDG_RUNTIME_DIR=folder)
        {"crowd": crowd, "start": start}[options.part](options, folder, environment)


if __name__ == "__main__":
    main()
