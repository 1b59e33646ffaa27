#!/usr/bin/env python3
"""What does `discnice run --disk unlimited` cost? All hooks and the accounting are on.

Runs each job in turn without and with DiscNice (A B B A …), on cached data, and prints the medians
of CPU time (user + system of the whole tree) and of the paired ratios, with the middle half of the
ratios as a measure of noise. With --disk RATE the same under a limit that cached data must not feel.
"""
import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def cpu_time(command, folder):
    """User and system time of the command and all its descendants, and wall time, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    subprocess.run(command, shell=True, cwd=folder, stdout=subprocess.DEVNULL, check=False)
    wall = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, wall


def prepare(folder):
    """A tree of about 200 MB of real files, and a small C project."""
    for source in ("/usr/include", "/usr/share/perl", "/usr/share/doc", "/usr/lib/python3"):
        if os.path.isdir(source):
            subprocess.run(["cp", "-r", source, f"{folder}/tree"] if not os.path.exists(
                f"{folder}/tree") else ["cp", "-r", source, f"{folder}/tree/"],
                stderr=subprocess.DEVNULL, check=False)
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


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--discnice", default=os.path.join(HERE, "../target/release/discnice"))
    parser.add_argument("--disk", default="unlimited")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--jobs", default="tar,grep,make")
    arguments = parser.parse_args()
    discnice = os.path.abspath(arguments.discnice)
    folder = tempfile.mkdtemp(prefix="discnice-overhead-", dir=".")
    folder = os.path.abspath(folder)
    jobs = {
        "tar": ("tar -cf - tree | cat", ""),
        "grep": ("grep -r zzzyyyxxx tree", ""),
        "make": ("make -s -j2 all", "make -s clean"),
    }
    try:
        prepare(folder)
        print(f"{'job':<6} {'alone':>8} {'with':>8} {'ratio':>8}   middle half of the ratios")
        for name in arguments.jobs.split(","):
            command, clean = jobs[name]
            where = f"{folder}/project" if name == "make" else folder
            wrapped = f"{discnice} run --disk {arguments.disk} -- sh -c '{command}'"
            plain = f"sh -c '{command}'"
            times = {plain: [], wrapped: []}
            for number in range(arguments.rounds + 1):
                order = (plain, wrapped) if number % 2 else (wrapped, plain)
                for one in order:
                    if clean:
                        cpu_time(clean, where)
                    used, _ = cpu_time(one, where)
                    if number:
                        times[one].append(used)
            ratios = sorted(b / a for a, b in zip(times[plain], times[wrapped]))
            quarter = len(ratios) // 4
            print(f"{name:<6} {statistics.median(times[plain]):7.3f}s "
                  f"{statistics.median(times[wrapped]):7.3f}s {statistics.median(ratios):8.4f}   "
                  f"{ratios[quarter]:.4f} to {ratios[-1 - quarter]:.4f}", flush=True)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
