#!/usr/bin/env python3
"""What does DiscNice cost with the limit `unlimited`? All hooks and the accounting are on.

Runs each job in turn without and within DiscNice (A B B A …), on cached data, and prints the medians
of CPU time (user + system of the whole tree) and of the paired ratios, with the middle half of the
ratios as a measure of noise; then what starting a program and `discnice run` itself take. With
--disk RATE the same under a limit that cached data must not feel.

With --floor each job also runs beside floor.c, which interposes libc's functions and does nothing,
and once more without anything, which shows the noise. Needs no root.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile

import pairs

HERE = os.path.dirname(os.path.abspath(__file__))

JOBS = {
    "tar": (["sh", "-c", "tar -cf - tree | cat"], None),
    "grep": (["grep", "-r", "zzzyyyxxx", "tree"], None),
    "make": (["make", "-s", "-j2", "-C", "project", "all"],
             ["make", "-s", "-C", "project", "clean"]),
}


def project(folder):
    """A C project of 40 files."""
    os.makedirs(f"{folder}/project")
    headers = ["stdio.h", "stdlib.h", "string.h", "math.h", "unistd.h", "pthread.h", "signal.h"]
    body = "\n".join(f"double f{n}(double x) {{ return x * {n} + sin(x); }}" for n in range(300))
    for number in range(40):
        with open(f"{folder}/project/part{number}.c", "w") as file:
            file.write("".join(f"#include <{h}>\n" for h in headers) + body.replace(
                " f", f" p{number}_f"))
    with open(f"{folder}/project/Makefile", "w") as file:
        objects = " ".join(f"part{n}.o" for n in range(40))
        file.write(f"all: {objects}\n\tar rcs lib.a {objects}\n%.o: %.c\n\tgcc -O1 -c $<\n"
                   "clean:\n\trm -f *.o lib.a\n")


def floor(folder):
    """Builds the library that only interposes; returns what to start a job with."""
    library = f"{folder}/floor.so"
    # Constructors of other libraries already make such calls.
    subprocess.run(["cc", "-O2", "-fno-builtin", "-shared", "-fPIC", "-ftls-model=initial-exec",
                    "-Wl,-z,initfirst", "-o", library, os.path.join(HERE, "floor.c")], check=True)
    return ["env", f"LD_PRELOAD={library}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--discnice", default=os.path.join(HERE, "../../target/release/discnice"))
    parser.add_argument("--disk", default="unlimited")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--megabytes", type=int, default=200, help="of the tree")
    parser.add_argument("--jobs", default="tar,grep,make")
    parser.add_argument("--floor", action="store_true", help="compare with interposing alone")
    arguments = parser.parse_args()
    prefix = [os.path.abspath(arguments.discnice), "run", "--disk", arguments.disk, "--"]
    folder = os.path.abspath(tempfile.mkdtemp(prefix="discnice-overhead-", dir="."))
    workers = []
    try:
        size, count = pairs.tree(folder, arguments.megabytes)
        project(folder)
        print(f"tree: {size / 1e6:.0f} MB in {count} files\n{pairs.HEAD}")
        prefixes = {"": [], "with": prefix}
        if arguments.floor:
            prefixes |= {"floor": floor(folder), "again": []}
        workers = [pairs.Worker(folder, prefix) for prefix in prefixes.values()]
        for name in arguments.jobs.split(","):
            command, clean = JOBS[name]
            plain, *others = ([cpu for cpu, _ in one] for one in pairs.compare(
                workers, command, arguments.rounds, clean))
            for which, samples in zip(list(prefixes)[1:], others):
                label = f"{name} {which}" if arguments.floor else name
                print(pairs.row(label, plain, samples), flush=True)
        samples = pairs.compare(workers[:2], ["/bin/true"], 200)
        starts = [sorted(wall for _, wall in one)[100] for one in samples]
        print(f"starting a program: {1e3 * (starts[1] - starts[0]):+.3f} ms")
        print(f"discnice run:       {1e3 * pairs.start(prefix, folder):+.3f} ms")
    finally:
        for worker in workers:
            worker.close()
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
