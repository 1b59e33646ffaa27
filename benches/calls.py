#!/usr/bin/env python3
"""What does a single call cost that costs the disk nothing: bare, without a limit, under one, predicted?

A loop in C makes each call many times; the least mean of all rounds counts, as whatever else the
machine does only adds to it. Rounds alternate between the ways. The last column is what prediction alone
adds: to a class without a limit that only counts. `--at-most NS` fails if that is more for a cached read of an
own file. Needs a C compiler, no root; a file of somebody else's is one only for an ordinary user.
"""
import argparse
import os
import shutil
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
#define MEASURE(name, call) do { \
        double best = 1e9; \
        for (int round = 0; round < 10; round++) { \
            double begun = now(); \
            for (int i = 0; i < 50000; i++) if ((call) < 0) return 1; \
            double mean = (now() - begun) / 50000; \
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
    MEASURE("pread-4K", pread(fd, data, sizeof data, 0));
    MEASURE("in-order-4K", in_order(large));
    MEASURE("random-4K", pread(large, data, sizeof data, somewhere()));
    MEASURE("foreign-4K", in_order(foreign));
    MEASURE("pwrite-4K", pwrite(fd, data, sizeof data, 0));
    MEASURE("pipe", both(ends[1], ends[0]));
    MEASURE("socket", both(pair[0], pair[1]));
    MEASURE("stat", stat("file", &status));
    MEASURE("open+close", close(open("file", O_RDONLY)));
    return 0;
}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--discnice", default=os.path.join(HERE, "../target/release/discnice"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--at-most", type=float, help="of prediction on cached reads, in nanoseconds")
    arguments = parser.parse_args()
    run = [os.path.abspath(arguments.discnice), "run", "--disk"]
    ways = {"bare": [], "unlimited": run + ["unlimited", "--"], "100M": run + ["100M", "--"],
            "predicted": run + ["unlimited", "--estimator", "predict", "--"],
            "pred. 100M": run + ["100M", "--estimator", "predict", "--"]}
    foreign = os.path.realpath(sys.executable)
    folder = tempfile.mkdtemp(prefix="discnice-calls-", dir=".")
    try:
        with open(f"{folder}/guest.c", "w") as file:
            file.write(GUEST)
        subprocess.run(["cc", "-O2", "-o", f"{folder}/guest", f"{folder}/guest.c"], check=True)
        best = {}
        for _ in range(arguments.rounds):
            for way, prefix in ways.items():
                lines = subprocess.check_output(prefix + ["./guest", foreign], cwd=folder, text=True)
                for name, text in map(str.split, lines.splitlines()):
                    of_call = best.setdefault(name, {})
                    of_call[way] = min(of_call.get(way, 1e9), float(text))
        print(f"{'ns a round':<12}" + "".join(f"{way:>12}" for way in [*ways, "prediction"]))
        added = {name: of_call["predicted"] - of_call["unlimited"] for name, of_call in best.items()}
        for name, of_call in best.items():
            bare = of_call["bare"]
            rest = "".join(f"{of_call[way] - bare:>+12.1f}" for way in list(ways)[1:])
            print(f"{name:<12}{bare:>12.1f}{rest}{added[name]:>+12.1f}")
        cached = ("pread-4K", "in-order-4K", "random-4K")
        if arguments.at_most is not None and max(added[name] for name in cached) > arguments.at_most:
            sys.exit(f"calls.py: a prediction takes more than {arguments.at_most} ns")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
