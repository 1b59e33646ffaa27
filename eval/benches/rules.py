#!/usr/bin/env python3
"""What following rules costs policyd, and how soon it puts a process into its class.

    python3 eval/benches/rules.py [--rules 50] [--processes 300] [--seconds 30] [--starts 20]

The rules name programs that do not run, but for the last one. Prints the processor time of policyd, as a part of one core,
while all processes sleep and while a shell starts programs one after the other, and the time from the start of a program that
the last rule names to its being a member of the class. Run it as an ordinary user. Needs a release build.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TARGET = os.environ.get("CARGO_TARGET_DIR", os.path.join(HERE, "../..", "target"))
DISCNICE = os.path.join(TARGET, "release", "discnice")
TICK = os.sysconf("SC_CLK_TCK")
# Rules are followed soon after policyd has started, which this is more than.
SETTLED = 3


def configure(folder, count):
    """Writes `count` rules, of which the last one matches `scanner`."""
    os.makedirs(f"{folder}/discnice")
    with open(f"{folder}/discnice/config.toml", "w", encoding="utf-8") as file:
        for number in range(count - 1):
            file.write(f'[[rule]]\nmatch = {{ exe = "*/indexer{number}", cmdline = "*--watch*" }}\nclass = "made{number}"\n')
        file.write('[[rule]]\nmatch = { exe = "*/scanner" }\nclass = "scanners"\n')


def spent(process):
    """Processor time of a process and of its living descendants, in seconds."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        with open(f"/proc/{process}/task/{process}/children", encoding="utf-8") as file:
            children = file.read().split()
    except OSError:
        return 0
    return (int(fields[11]) + int(fields[12])) / TICK + sum(spent(child) for child in children)


def part_of_a_core(policyd, seconds):
    before, begin = spent(policyd), time.monotonic()
    time.sleep(seconds)
    return (spent(policyd) - before) / (time.monotonic() - begin)


def forks():
    """Processes that were started since the machine was."""
    with open("/proc/stat", encoding="utf-8") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("processes"))


def members(environment):
    shown = subprocess.run([DISCNICE, "class", "show", "scanners", "--json"], env=environment, capture_output=True, check=False)
    found = json.loads(shown.stdout) if shown.returncode == 0 else []
    return {member["process"] for one in found for member in one["members"]}


def reaction(scanner, environment):
    """Seconds from the start of a program to its being a member."""
    begin = time.monotonic()
    process = subprocess.Popen([scanner, "60"])
    try:
        while process.pid not in members(environment):
            if time.monotonic() - begin > 15:
                return float("inf")
            time.sleep(0.02)
        return time.monotonic() - begin
    finally:
        process.kill()
        process.wait()


def measure(options, folder):
    environment = {**os.environ, "XDG_CONFIG_HOME": f"{folder}/config", "XDG_RUNTIME_DIR": f"{folder}/run"}
    configure(environment["XDG_CONFIG_HOME"], options.rules)
    os.mkdir(environment["XDG_RUNTIME_DIR"], 0o700)
    scanner = shutil.copy(shutil.which("sleep"), f"{folder}/scanner")
    sleepers = [subprocess.Popen(["sleep", "100000"]) for _ in range(options.processes)]
    policyd = subprocess.Popen([DISCNICE, "policyd"], env=environment)
    try:
        time.sleep(SETTLED)
        idle = part_of_a_core(policyd.pid, options.seconds)
        print(f"all asleep:  {idle:.2%} of a core over {options.seconds} s", flush=True)
        shell = subprocess.Popen(["sh", "-c", "while :; do /bin/true; done"])
        begun = forks()
        busy = part_of_a_core(policyd.pid, options.seconds)
        rate = (forks() - begun) / options.seconds
        shell.kill()
        shell.wait()
        print(f"beside {rate:.0f} forks a second: {busy:.2%} of a core", flush=True)
        waits = [reaction(scanner, environment) for _ in range(options.starts)]
        print(f"from start to member: median {statistics.median(waits):.2f} s, longest {max(waits):.2f} s of {len(waits)}")
    finally:
        for process in [policyd, *sleepers]:
            process.terminate()
            process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rules", type=int, default=50)
    parser.add_argument("--processes", type=int, default=300)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--starts", type=int, default=20)
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        measure(parser.parse_args(), folder)


if __name__ == "__main__":
    main()
