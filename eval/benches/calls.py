#!/usr/bin/env python3
"""What does a single call cost that costs the disk nothing: bare, without a limit, under one, predicted, below a filter?

A loop in C makes each call many times; the least mean of all rounds counts, as whatever else the
machine does only adds to it. (Of the two calls of `pipe`, `socket` and `open+close` that is half.) The same of the medians of all runs tells what that was. Runs alternate between the ways.
- `below`: the dynamic program, started by a static one that is executed below a seccomp filter (ADR 9): its calls leave from
  the gate page. To be compared with `unlimited`.
- `notified`: the same program linked statically, each of whose reads and writes the supervisor answers.
The last column is what prediction alone adds: to a class without a limit that only counts. `--at-most NS` fails if that is
more for a cached read of an own file. Needs a C compiler, no root; a file of somebody else's is one only for an ordinary user.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))

GUEST = r"""
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
static char data[4096];
static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}
#define MEASURE(name, calls, call) do { \
        double best = 1e9; \
        for (int round = 0; round < 10; round++) { \
            double begun = now(); \
            for (int i = 0; i < 50000; i++) if ((call) < 0) return 1; \
            double mean = (now() - begun) / 50000 / calls; \
            if (mean < best) best = mean; \
        } \
        printf("%s %.1f\n", name, best); \
    } while (0)
static int both(int in, int out) { return write(in, data, 64) != 64 || read(out, data, 64) != 64 ? -1 : 0; }
#define SIZE (16 << 20)
static unsigned state = 1;
static off_t somewhere(void) { return (state = state * 1664525 + 1013904223) % (SIZE / 4096) * 4096l; }
static int in_order(int fd) {
    ssize_t done = read(fd, data, sizeof data);
    return done > 0 ? 0 : lseek(fd, 0, SEEK_SET);
}
int main(int count, char **words) {
    int large = open("large", O_RDWR | O_CREAT, 0600), foreign = open(words[count - 1], O_RDONLY);
    for (int at = 0; at < SIZE; at += sizeof data) if (write(large, data, sizeof data) < 0) return 1;
    while (read(foreign, data, sizeof data) > 0) {}
    int fd = open("file", O_RDWR | O_CREAT, 0600), ends[2], pair[2];
    struct stat status;
    if (write(fd, data, sizeof data) < 0 || pipe(ends) || socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) return 1;
    MEASURE("pread-4K", 1, pread(fd, data, sizeof data, 0));
    MEASURE("in-order-4K", 1, in_order(large));
    MEASURE("random-4K", 1, pread(large, data, sizeof data, somewhere()));
    MEASURE("foreign-4K", 1, in_order(foreign));
    MEASURE("pwrite-4K", 1, pwrite(fd, data, sizeof data, 0));
    MEASURE("pipe", 2, both(ends[1], ends[0]));
    MEASURE("socket", 2, both(pair[0], pair[1]));
    MEASURE("stat", 1, stat("file", &status));
    MEASURE("open+close", 2, close(open("file", O_RDONLY)));
    return 0;
}
"""

# Reads of an own file that is in the page cache.
CACHED = ("pread-4K", "in-order-4K", "random-4K")

STARTER = r"""
#include <unistd.h>
int main(int argc, char **argv) { return execv(argv[1], argv + 1); }
"""


def build(folder):
    def compile_one(name, source, *options):
        with open(f"{folder}/{name}.c", "w") as file:
            file.write(source)
        subprocess.run(["cc", "-O2", *options, "-o", f"{folder}/{name}", f"{folder}/{name}.c"], check=True)
    compile_one("guest", GUEST)
    compile_one("static", GUEST, "-static")
    compile_one("starter", STARTER, "-static")


def added(of_call, pick):
    """What prediction adds to a call."""
    return pick(of_call["predicted"]) - pick(of_call["unlimited"])


def table(title, ways, found, pick):
    print(f"{title:<14}" + "".join(f"{way:>12}" for way in [*ways, "prediction"]))
    for name, of_call in found.items():
        bare = pick(of_call["bare"])
        rest = "".join(f"{pick(of_call[way]) - bare:>+12.1f}" for way in ways[1:])
        print(f"{name:<14}{bare:>12.1f}{rest}{added(of_call, pick):>+12.1f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--discnice", default=os.path.join(HERE, "../../target/release/discnice"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--at-most", type=float, help="of prediction on cached reads, in nanoseconds")
    arguments = parser.parse_args()
    run = [os.path.abspath(arguments.discnice), "run", "--disk"]
    guest = ["./guest", os.path.realpath(sys.executable)]
    ways = {"bare": guest, "unlimited": [*run, "unlimited", "--", *guest], "100M": [*run, "100M", "--", *guest],
            "predicted": [*run, "unlimited", "--estimator", "predict", "--", *guest],
            "pred. 100M": [*run, "100M", "--estimator", "predict", "--", *guest],
            "below": [*run, "unlimited", "--", "./starter", *guest],
            "notified": [*run, "unlimited", "--", "./static", guest[1]]}
    folder = tempfile.mkdtemp(prefix="discnice-calls-", dir=".")
    try:
        build(folder)
        found = {}
        for _ in range(arguments.rounds):
            for way, command in ways.items():
                lines = subprocess.check_output(command, cwd=folder, text=True)
                for name, text in map(str.split, lines.splitlines()):
                    found.setdefault(name, {}).setdefault(way, []).append(float(text))
        table("least, ns", list(ways), found, min)
        table("median, ns", list(ways), found, statistics.median)
        most = max(added(found[name], min) for name in CACHED)
        if arguments.at_most is not None and most > arguments.at_most:
            sys.exit(f"calls.py: a prediction takes {most:.1f} ns, more than {arguments.at_most}")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
