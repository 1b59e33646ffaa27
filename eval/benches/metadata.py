#!/usr/bin/env python3
"""Does `discnice run --meta-ops N` hold `rm -r` and `find` to N metadata operations a second?

Makes a tree of empty files, removes it with `rm -r` under the limit as an unprivileged user, and
counts from outside: the entries that vanished, by the time that it took, and in every second (the
files that are left, by getdents). `rm` makes one unlinkat for each entry and little else (strace
tells), so entries a second are its metadata operations a second.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
NOBODY = 65534


def make_tree(root, count, each=1000):
    for start in range(0, count, each):
        folder = f"{root}/d{start:07d}"
        os.makedirs(folder)
        for number in range(min(each, count - start)):
            os.close(os.open(f"{folder}/f{number}", os.O_CREAT | os.O_WRONLY))
    if os.geteuid() == 0:
        subprocess.run(["chown", "-R", str(NOBODY), root], check=True)


def left(root):
    total = 0
    for folder, _, files in os.walk(root):
        total += len(files)
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--discnice", default=os.path.join(HERE, "../../target/release/discnice"))
    parser.add_argument("--files", type=int, default=200_000)
    parser.add_argument("--rate", type=int, default=1000)
    parser.add_argument("--folder", default=".")
    arguments = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="discnice-metadata-", dir=arguments.folder)
    os.chmod(folder, 0o777)
    root = f"{folder}/tree"
    command = [os.path.abspath(arguments.discnice), "run", "--meta-ops", str(arguments.rate), "--",
               "rm", "-r", root]
    if os.geteuid() == 0:
        command = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *command]
    samples, done = [], threading.Event()

    def watch():
        while not done.wait(1):
            samples.append((time.monotonic(), left(root)))

    try:
        make_tree(root, arguments.files)
        watcher = threading.Thread(target=watch)
        begun = time.monotonic()
        watcher.start()
        subprocess.run(command, stdin=subprocess.DEVNULL, check=True)
        seconds = time.monotonic() - begun
        done.set()
        watcher.join()
        rates = [(b - c) / (u - t) for (t, b), (u, c) in zip(samples, samples[1:])]
        rate = arguments.files / seconds
        print(f"rm -r of {arguments.files} files: {seconds:.1f} s, {rate:.1f} files/s, "
              f"{100 * rate / arguments.rate:.2f} % of {arguments.rate}")
        if rates:
            print(f"by the second: median {statistics.median(rates):.0f}, "
                  f"least {min(rates):.0f}, most {max(rates):.0f}")
    finally:
        done.set()
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
