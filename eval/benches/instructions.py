#!/usr/bin/env python3
"""How many instructions does a hook add to a call that costs the disk nothing?

Counted by callgrind, so the figures are the same on a busy machine: user-mode instructions of one
call without DiscNice, and how many are added in a class without limit and under a limit that is not
reached. Under callgrind every call is slow, so a limited class looks at the account after each one:
the last column is an upper bound. Needs valgrind, no root.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))

GUEST = r"""
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
static char data[4096];
int main(int argc, char **argv) {
    const char *what = argv[1];
    int count = atoi(argv[2]), ends[2];
    int fd = open("file", O_RDWR | O_CREAT, 0600);
    if (write(fd, data, sizeof data) != sizeof data || pipe(ends)) return 1;
    if (!strcmp(what, "socket") && socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) return 1;
    FILE *stream = fdopen(dup(fd), "r");
    setvbuf(stream, NULL, _IOFBF, 512);
    for (int i = 0; i < count; i++) {
        if (!strcmp(what, "pread")) {
            if (pread(fd, data, sizeof data, 0) < 0) return 1;
        } else if (!strcmp(what, "pwrite")) {
            if (pwrite(fd, data, 512, 0) < 0) return 1;
        } else if (!strcmp(what, "pipe") || !strcmp(what, "socket")) {
            if (write(ends[1], data, 1) != 1 || read(ends[0], data, 1) != 1) return 1;
        } else if (!strcmp(what, "fread")) {
            if (fread(data, 512, 1, stream) != 1) rewind(stream);
        } else if (!strcmp(what, "open+close")) {
            close(open("file", O_RDONLY));
        } else if (!strcmp(what, "readdir")) {
            DIR *folder = opendir(".");
            while (readdir(folder)) {}
            closedir(folder);
        } else if (!strcmp(what, "stat")) {
            struct stat status;
            if (stat("file", &status)) return 1;
        }
    }
    return 0;
}
"""
CALLS = ("pread", "pwrite", "fread", "pipe", "socket", "open+close", "readdir", "stat")
FEW, MANY = 2048, 10240


def instructions(prefix, folder, call, count):
    """User-mode instructions of a whole run."""
    command = prefix + ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
                        "./guest", call, str(count)]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return int(re.search(r"Collected : (\d+)", ended.stderr).group(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--discnice", default=os.path.join(HERE, "../../target/release/discnice"))
    parser.add_argument("--calls", default=",".join(CALLS))
    arguments = parser.parse_args()
    if not shutil.which("valgrind"):
        sys.exit("instructions.py: valgrind is not installed")
    run = [os.path.abspath(arguments.discnice), "run", "--disk"]
    ways = {"alone": [], "unlimited": run + ["unlimited", "--"], "limited": run + ["1G", "--mechanism", "preload", "--"]}
    folder = tempfile.mkdtemp(prefix="discnice-instructions-", dir=".")
    try:
        with open(f"{folder}/guest.c", "w") as file:
            file.write(GUEST)
        subprocess.run(["cc", "-O2", "-o", f"{folder}/guest", f"{folder}/guest.c"], check=True)
        print(f"{'call':<12} {'alone':>8} {'unlimited':>12} {'limited':>12}")
        for call in arguments.calls.split(","):
            each = {way: (instructions(prefix, folder, call, MANY)
                          - instructions(prefix, folder, call, FEW)) / (MANY - FEW)
                    for way, prefix in ways.items()}
            print(f"{call:<12} {each['alone']:8.1f} "
                  + " ".join(f"{each[way] - each['alone']:+12.1f}" for way in ("unlimited", "limited")),
                  flush=True)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
