#!/usr/bin/env python3
"""How much processor time does a host lose beside a guest (Rate Windows, section 2)?

    python3 eval/benches/guest.py [--rounds N] [--seconds S]

The host computes on every processor for so many seconds and counts what it gets done: alone, beside as many
computing processes under `discnice run --guest`, and beside the same under nice(1) -19, the paper's comparison.
The ways take turns; what counts is the median of the ratios to the run alone before it. Needs no rights. As root,
everything runs as nobody.
"""
import argparse
import os
import signal
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
NOBODY = 65534
HOST = """import sys, time
end, count = time.monotonic() + float(sys.argv[1]), 0
while time.monotonic() < end:
    for _ in range(1000): count += 1
print(count)
"""
GUEST = "while True: pass"


def user():
    return {} if os.geteuid() else dict(user=NOBODY, group=NOBODY, extra_groups=[], cwd="/")


def host(python, processors, seconds):
    """What the host gets done."""
    words = [python, "-c", HOST, str(seconds)]
    all_of_it = [subprocess.Popen(words, stdout=subprocess.PIPE, **user()) for _ in range(processors)]
    return sum(int(process.communicate()[0]) for process in all_of_it)


def beside(prefix, python, processors, seconds):
    guests = [subprocess.Popen([*prefix, python, "-c", GUEST], start_new_session=True, **user())
              for _ in range(processors)]
    time.sleep(0.5)
    try:
        return host(python, processors, seconds)
    finally:
        for guest in guests:
            os.killpg(guest.pid, signal.SIGKILL)
            guest.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--discnice", default=os.path.join(HERE, "../../target/release/discnice"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--python", default="/usr/bin/python3", help="one that the user may run")
    options = parser.parse_args()
    discnice = os.path.abspath(options.discnice)
    if not os.access(discnice, os.X_OK):
        sys.exit(f"guest.py: build first: {discnice}")
    processors = os.cpu_count() or 1
    ways = {"alone again": None, "beside guests": [discnice, "run", "--guest", "--"],
            "beside nice -19": ["nice", "-n", "19"]}
    ratios = {way: [] for way in ways}
    for _ in range(options.rounds):
        for way, prefix in ways.items():
            alone = host(options.python, processors, options.seconds)
            if prefix is None:
                done = host(options.python, processors, options.seconds)
            else:
                done = beside(prefix, options.python, processors, options.seconds)
            ratios[way].append(done / alone)
    for way, found in ratios.items():
        lost = 100 * (1 - statistics.median(found))
        print(f"{way:<16} the host loses {lost:5.2f} % ({100 * (1 - max(found)):.2f} to {100 * (1 - min(found)):.2f})")


if __name__ == "__main__":
    main()
