#!/usr/bin/env python3
"""Guests steal cycles of nodes whose owners work on them, on real Slurm: `make fleet-steal`.

Two nodes have a processor each, of this machine's two. A guest that computes for SECONDS begins on the first, whose owner begins to work
WHEN seconds later, for a short time or a long one. The guest is the batch script of docs/linger.md, with three times of moving: none,
so that it leaves at once as in Condor; what it really takes, so that it lingers as long as that is worth it; and for ever, so that it
stays. Its program has a state that takes COPY seconds to bring to another node.

Printed: how long the guest took until it ended, how often it moved, and the owner's part of its processor beside it, of that alone.

steal.py DISCNICE. Needs the superuser, slurm-wlm, munge, and two processors.
"""

import os
import signal
import sys
import time

import cluster
from cluster import quietly, run, until

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "linger.md")
NODES = ["n1", "n2"]
SECONDS, WHEN, COPY = 14, 4, 3
EPISODES = {"short": 2, "long": 20}
# Moving takes the copy, and what Slurm needs to start a job.
MOVING = {"leaves": 0.1, "lingers": COPY + 1, "stays": 100000}


class Cluster(cluster.Cluster):
    def __init__(self, program):
        super().__init__(NODES)
        self.program = program
        for node in NODES:
            os.makedirs(f"{self.root}/run/{node}", mode=0o700)

    def daemon(self, name, script):
        # A node's programs compete among themselves, not with the rest of the machine.
        group = f"/sys/fs/cgroup/cpu/discnice-{name}"
        os.makedirs(group, exist_ok=True)
        with open(f"{group}/cpu.shares", "w") as file:
            file.write("200000")
        return f"echo $$ >{group}/cgroup.procs; taskset -cp {NODES.index(name)} $$ >/dev/null; {script}"

    def owner(self, seconds):
        """The owner's program on the first node, which wants all of its processor."""
        script = self.daemon("n1", f"exec {sys.executable} {os.path.abspath(__file__)} --owner {seconds} {self.root}/owner")
        return self.start("sh", "-c", script)

    def share(self):
        """How much of its processor the owner had."""
        with open(f"{self.root}/owner") as file:
            return float(file.read())

    def remove(self):
        for node in NODES:
            group = f"/sys/fs/cgroup/cpu/discnice-{node}"
            for process in open(f"{group}/cgroup.procs").read().split() if os.path.exists(group) else []:
                os.kill(int(process), signal.SIGKILL)
        time.sleep(0.5)
        for node in NODES:
            quietly("rmdir", f"/sys/fs/cgroup/cpu/discnice-{node}")
        super().remove()

    def guest(self, moving):
        """Submits the page's script, with this program in the place of the page's."""
        with open(PAGE) as file:
            script = file.read().split("## In Slurm")[1].split("```sh\n")[1].split("```")[0]
        changes = [
            ("./simulate --resume state", f"{sys.executable} {os.path.abspath(__file__)} --guest {self.root}/progress"),
            ("--moving 30", f"--moving {moving} --watch 0.5"),
            ("#!/bin/sh\n", f"#!/bin/sh\n#SBATCH --output=/dev/null\nexport XDG_RUNTIME_DIR={self.root}/run/$SLURMD_NODENAME\n"),
        ]
        for page, ours in changes:
            if script.count(page) != 1:
                sys.exit(f"the page's script has no {page!r}: {script}")
            script = script.replace(page, ours)
        with open(f"{self.root}/guest.sh", "w") as file:
            file.write(script)
        with open(f"{self.root}/progress", "w") as file:
            file.write("0 0")
        run("sbatch", "-w", "n1", "-n1", f"{self.root}/guest.sh", stdout=-3)

    def state(self):
        """What the guest has done, and on how many nodes it has been."""
        with open(f"{self.root}/progress") as file:
            done, starts = file.read().split()
        return float(done), int(starts)


def compute():
    """A piece of work of about a millisecond."""
    return sum(number * number for number in range(12000))


def owner(seconds, into):
    begun, used = time.monotonic(), time.process_time()
    while time.monotonic() < begun + float(seconds):
        compute()
    with open(into, "w") as file:
        file.write(str((time.process_time() - used) / (time.monotonic() - begun)))


def guest(path):
    """Computes for SECONDS of processor time, and keeps what it has done."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    with open(path) as file:
        done, starts = file.read().split()
    if int(starts):
        time.sleep(COPY)
    begun, at = time.process_time(), float(done)

    def keep():
        with open(f"{path}.new", "w") as file:
            file.write(f"{at + time.process_time() - begun} {int(starts) + 1}")
        os.rename(f"{path}.new", path)

    keep()
    kept = time.monotonic()
    while at + time.process_time() - begun < SECONDS:
        compute()
        if time.monotonic() > kept + 0.2:
            keep()
            kept = time.monotonic()
    keep()


def scenario(nodes):
    nodes.owner(4).wait()
    alone, rows = nodes.share(), {}
    print(f"the owner alone has {alone:.3f} of its processor\n{'the owner works':<16} {'the guest':<10} {'took':>7} {'moved':>6} {'owner':>6}", flush=True)
    for episode, length in EPISODES.items():
        for policy, moving in MOVING.items():
            begun = time.monotonic()
            nodes.guest(moving)
            time.sleep(WHEN)
            working = nodes.owner(length)
            until("the guest has ended", lambda: nodes.state()[0] >= SECONDS, 120, lambda: f"{nodes.state()} {nodes.logs()}")
            took, moves = time.monotonic() - begun, nodes.state()[1] - 1
            working.wait()
            rows[episode, policy] = took, moves, nodes.share() / alone
            print(f"{episode:<16} {policy:<10} {took:5.1f} s {moves:6} {rows[episode, policy][2]:6.3f}", flush=True)
            until("no job is left", lambda: not quietly("squeue", "-h").stdout.strip(), 60)
    return rows


#= rate-windows/8-cycle-stealing
def test_policies(rows):
    """Compares what was measured with what lingering is for; yields what is not so."""
    took = {key: row[0] for key, row in rows.items()}
    for what, is_so in [
        ("it moves once in a long episode", rows["long", "lingers"][1] == 1),
        ("it stays in a short one", rows["short", "lingers"][1] == 0),
        ("where it leaves at once, it is later than where it lingers in a short episode", took["short", "leaves"] > took["short", "lingers"]),
        ("where it stays, it is later than where it moves in a long one", took["long", "stays"] > took["long", "lingers"]),
        ("owners have 95 % of what they have alone", all(row[2] > 0.95 for row in rows.values())),
    ]:
        print(f"{'ok   ' if is_so else 'WRONG'} {what}")
        if not is_so:
            yield what


def main():
    if sys.argv[1:2] == ["--owner"]:
        return owner(*sys.argv[2:])
    if sys.argv[1:2] == ["--guest"]:
        return guest(sys.argv[2])
    cluster.isolate([*cluster.NEEDED, "sbatch", "taskset"])
    nodes = Cluster(os.path.abspath(sys.argv[1]))
    os.environ["PATH"] = f"{os.path.dirname(nodes.program)}:{os.environ['PATH']}"
    try:
        nodes.up()
        failed = list(test_policies(scenario(nodes)))
    finally:
        nodes.remove()
    return f"failed: {'; '.join(failed)}" if failed else 0


if __name__ == "__main__":
    sys.exit(main())
