#!/usr/bin/env python3
"""Is what costs the disk nothing free? Wall time with a limit of 1 MiB/s against without DiscNice.

- grep: a recursive grep of a cached tree;
- region-write: 10 KB written 10,000 times over the same place (DiscNice, 6.1), ten times over, so
  that starting the program, for which see overhead.py, is no part of it;
- create-delete: a file of 10 KB made and deleted 10,000 times (DiscNice, 6.1).

Run in turn (A B B A …); prints the medians and the median of the paired ratios. What `discnice run`
itself takes is left out (see overhead.py). Needs no root.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile

import pairs

HERE = os.path.dirname(os.path.abspath(__file__))

WRITER = r"""
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
    static char data[10240];
    int remove = strcmp(argv[1], "create-delete") == 0, count = remove ? 10000 : 100000;
    int fd = open("file", O_RDWR | O_CREAT | O_TRUNC, 0600);
    for (int i = 0; i < count; i++) {
        if (remove) {
            int other = open("other", O_WRONLY | O_CREAT | O_EXCL, 0600);
            if (write(other, data, sizeof data) != sizeof data) return 1;
            close(other);
            unlink("other");
        } else if (pwrite(fd, data, sizeof data, 0) != sizeof data) {
            return 1;
        }
    }
    return unlink("file");
}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--discnice", default=os.path.join(HERE, "../../target/release/discnice"))
    parser.add_argument("--disk", default="1M")
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    prefix = [os.path.abspath(arguments.discnice), "run", "--disk", arguments.disk, "--"]
    folder = os.path.abspath(tempfile.mkdtemp(prefix="discnice-free-", dir="."))
    plain = within = None
    try:
        with open(f"{folder}/writer.c", "w") as file:
            file.write(WRITER)
        subprocess.run(["cc", "-O2", "-o", f"{folder}/writer", f"{folder}/writer.c"], check=True)
        size, count = pairs.tree(folder, 100)
        jobs = {
            "grep": ["grep", "-r", "zzzyyyxxx", "tree"],
            "region-write": ["./writer", "region-write"],
            "create-delete": ["./writer", "create-delete"],
        }
        print(f"tree: {size / 1e6:.0f} MB in {count} files\n{pairs.HEAD}")
        plain, within = pairs.Worker(folder, []), pairs.Worker(folder, prefix)
        for name, command in jobs.items():
            samples = pairs.compare((plain, within), command, arguments.rounds)
            print(pairs.row(name, *([wall for _, wall in one] for one in samples)), flush=True)
    finally:
        for worker in (plain, within):
            if worker:
                worker.close()
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
