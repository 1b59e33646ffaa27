#!/usr/bin/env python3
"""What a polite job costs a foreground, and what politeness costs the job, with programs not ours.

    python3 benches/polite.py foreground [--rounds N] [--seconds S]
    python3 benches/polite.py idle [--rounds N] [--seconds S]

foreground: gcc compiles on one processor, alone, beside xz on the same processor, and beside
`discnice run --polite -- xz`, which learned its targets before. idle: xz compresses a file, plainly and
under `discnice run --polite`, on a machine that should be idle. Pairs are interleaved; medians are printed.
Needs a release build, gcc, xz and taskset (util-linux); no rights.
"""

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TARGET = os.environ.get("CARGO_TARGET_DIR", os.path.join(HERE, "..", "target"))
DISCNICE = os.path.join(TARGET, "release", "discnice")
ONE_PROCESSOR = ["taskset", "-c", "1"]
FUNCTION = "double f{0}(double*a,int n){{double s=0;for(int i=0;i<n;i++)for(int j=0;j<i;j++)s+=a[i]*a[j]/{0}.5;return s;}}\n"


class Scene:
    """A folder of its own for targets and shared memory, so that nothing else is disturbed."""

    def __init__(self, folder):
        self.folder = folder
        self.environment = dict(os.environ, XDG_RUNTIME_DIR=folder, XDG_STATE_HOME=folder)

    def polite(self, *words):
        return [DISCNICE, "run", "--polite", "--no-probation", "--", *words]

    def start(self, words):
        return subprocess.Popen(
            words, env=self.environment, stdout=subprocess.DEVNULL, start_new_session=True
        )

    def timed(self, words, times=1):
        begun = time.monotonic()
        for _ in range(times):
            subprocess.run(words, env=self.environment, check=True, stdout=subprocess.DEVNULL)
        return time.monotonic() - begun


def end(job):
    os.killpg(job.pid, signal.SIGKILL)
    job.wait()


def foreground(scene, rounds, seconds):
    source = os.path.join(scene.folder, "work.c")
    with open(source, "w") as out:
        out.writelines(FUNCTION.format(number) for number in range(200))
    compiling = [*ONE_PROCESSOR, "gcc", "-O3", "-c", "-o", "/dev/null", source]
    scene.timed(compiling)
    times = max(1, round(seconds / scene.timed(compiling)))
    squeeze = [*ONE_PROCESSOR, "xz", "-6", "-T1", "-c", "/dev/urandom"]
    teacher = scene.start(scene.polite(*squeeze))
    time.sleep(20)
    end(teacher)
    plain, polite = [], []
    for number in range(rounds):
        alone = scene.timed(compiling, times)
        told = [f"alone {alone:.1f} s"]
        for kind, words, slower in (("beside", squeeze, plain), ("polite", scene.polite(*squeeze), polite)):
            job = scene.start(words)
            time.sleep(5)
            took = scene.timed(compiling, times)
            end(job)
            slower.append(100 * (took / alone - 1))
            told.append(f"{kind} {took:.1f} s")
        print(f"round {number + 1}: {', '.join(told)}", flush=True)
    print(
        f"the foreground takes longer by {statistics.median(plain):+.1f} % beside the job, "
        f"by {statistics.median(polite):+.1f} % beside the polite job (medians of {rounds})"
    )


def idle(scene, rounds, seconds):
    data = os.path.join(scene.folder, "data")
    with open(data, "wb") as out:
        out.write(os.urandom(8 << 20))
    squeeze = ["xz", "-6", "-T1", "-k", "-c", data]
    times = max(1, round(seconds / scene.timed(squeeze)))
    script = ["sh", "-c", f"for i in $(seq {times}); do xz -6 -T1 -k -c {data} > /dev/null; done"]
    scene.timed(scene.polite(*script))
    pairs = []
    for number in range(rounds):
        kinds = [script, scene.polite(*script)]
        order = kinds if number % 2 == 0 else kinds[::-1]
        took = {id(words): scene.timed(words) for words in order}
        pairs.append(100 * (took[id(kinds[1])] / took[id(kinds[0])] - 1))
        print(f"pair {number + 1}: {pairs[-1]:+.2f} %", flush=True)
    print(f"a polite job on an idle machine takes {statistics.median(pairs):+.2f} % longer (median of {rounds})")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("foreground", "idle"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=20)
    options = parser.parse_args()
    if not os.access(DISCNICE, os.X_OK):
        sys.exit(f"build first: {DISCNICE}")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        what = {"foreground": foreground, "idle": idle}[options.what]
        what(Scene(folder), options.rounds, options.seconds)


if __name__ == "__main__":
    main()
