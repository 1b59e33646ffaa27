"""Paired measurement: the same job without and with DiscNice (and whatever else), in turn (A B B A …).

A job is started by a worker, which is a process of its own: one outside of DiscNice, one within. So
what `discnice run` itself takes is left out; `start` measures that.
"""
import os
import resource
import shlex
import statistics
import subprocess
import sys
import time

SOURCES = ("/usr/include", "/usr/share/perl", "/usr/share/doc", "/usr/lib/python3", "/usr/share/locale")


def tree(folder, megabytes):
    """A tree of real files of about so many megabytes, in `folder`/tree; returns bytes and files."""
    os.makedirs(f"{folder}/tree")
    size = count = 0
    copy = 0
    while size < megabytes << 20:
        before = size
        for source in SOURCES:
            for where, _, names in os.walk(source):
                into = f"{folder}/tree/{copy}{where}"
                os.makedirs(into, exist_ok=True)
                for name in names:
                    try:
                        with open(f"{where}/{name}", "rb") as file:
                            data = file.read()
                    except OSError:
                        continue
                    with open(f"{into}/{name}", "wb") as file:
                        file.write(data)
                    size, count = size + len(data), count + 1
                if size >= megabytes << 20:
                    return size, count
        if size == before:
            sys.exit("no files to copy in " + " ".join(SOURCES))
        copy += 1
    return size, count


class Worker:
    """Runs jobs in a folder; `prefix` is what the worker itself is started with."""

    def __init__(self, folder, prefix):
        self.process = subprocess.Popen(
            prefix + [sys.executable, os.path.abspath(__file__), folder],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, command):
        """CPU time (user and system, with all descendants) and wall time, in seconds."""
        self.process.stdin.write(shlex.join(command) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().split()
        if len(answer) != 2:
            sys.exit(f"the worker ended at {shlex.join(command)}")
        return tuple(map(float, answer))

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def work(folder):
    os.chdir(folder)
    for line in sys.stdin:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.monotonic()
        subprocess.run(shlex.split(line), stdout=subprocess.DEVNULL, check=False)
        wall = time.monotonic() - start
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        print(cpu, wall, flush=True)


def compare(workers, command, rounds, clean=None):
    """`rounds` turns of all workers after one for warming up: for each worker a list of (CPU, wall)."""
    samples = [[] for _ in workers]
    for number in range(rounds + 1):
        turn = list(zip(workers, samples))
        for worker, into in turn if number % 2 else reversed(turn):
            if clean:
                worker.run(clean)
            sample = worker.run(command)
            if number:
                into.append(sample)
    return samples


def ratio(plain, within):
    """Median of the paired ratios and their middle half."""
    ratios = sorted(b / a for a, b in zip(plain, within))
    quarter = len(ratios) // 4
    return statistics.median(ratios), ratios[quarter], ratios[-1 - quarter]


def least(samples):
    """Mean of the lowest quarter: what others on the machine disturbed least."""
    return statistics.mean(sorted(samples)[:max(1, len(samples) // 4)])


HEAD = (f"{'job':<14} {'alone':>9} {'with':>9} {'ratio':>8} {'lowest':>8}   middle half of the ratios\n"
        f"{'':<43}{'quarter':>8}")


def row(name, plain, within):
    """One line of a table."""
    middle, low, high = ratio(plain, within)
    return (f"{name:<14} {statistics.median(plain):8.4f}s {statistics.median(within):8.4f}s "
            f"{middle:8.4f} {least(within) / least(plain):8.4f}   {low:.4f} to {high:.4f}")


def start(prefix, folder, rounds=200):
    """Median wall time that `prefix` adds to starting /bin/true, in seconds."""
    times = {0: [], 1: []}
    for _ in range(rounds):
        for which, command in enumerate((["/bin/true"], prefix + ["/bin/true"])):
            begun = time.monotonic()
            subprocess.run(command, cwd=folder, check=True)
            times[which].append(time.monotonic() - begun)
    return statistics.median(times[1]) - statistics.median(times[0])


if __name__ == "__main__":
    work(sys.argv[1])
