#!/usr/bin/env python3
"""Three Slurm nodes on this machine share a budget: `make fleet-test`.

redis-server is on the nodes' bridge. Jobs write by `srun discnice run --class backup`. What all of them move together is compared with the cap in each
second and in each five, while the server, a node's network and a policyd fail in turn.

Needs the superuser and slurm-wlm, munge, redis-server, iproute2. Leaves nothing behind.
"""

import json
import os
import signal
import sys
import time

import cluster
from cluster import HERE, quietly, run, until

CAP = 6 << 20
FLOOR = 200 << 10
LEASE = 4
NODES = ["n1", "n2", "n3"]
PORT = 16379


class Cluster(cluster.Cluster):
    """Three nodes and a Redis."""

    def __init__(self, program):
        super().__init__(NODES)
        self.program, self.redis = program, None
        for folder in ["config/discnice", *(f"run/{node}" for node in NODES)]:
            os.makedirs(f"{self.root}/{folder}", mode=0o700)
        with open(f"{self.root}/config/discnice/config.toml", "w") as file:
            file.write(f'[class.backup]\nfleet = "redis://{HERE}:{PORT}/backup"\n')

    def up(self):
        super().up()
        self.redis_up()

    def redis_up(self):
        # As after a kill -9 without a snapshot: it knows nothing, and its settings are made anew.
        self.redis = self.start(
            "redis-server", "--bind", HERE, "--port", str(PORT), "--save", "", "--dir", self.root, "--protected-mode", "no",
        )
        words = ["fleet", "set", f"redis://{HERE}:{PORT}/backup", "--cap", f"{CAP}B", "--floor", f"{FLOOR}B"]
        words += ["--nodes", "3", "--lease", f"{LEASE}s"]
        until("redis-server answers", lambda: quietly(self.program, *words).returncode == 0)

    def job(self, nodes, name="backup"):
        """A job that writes on each of these nodes until it is ended."""
        script = (
            f"export XDG_RUNTIME_DIR={self.root}/run/$SLURMD_NODENAME XDG_CONFIG_HOME={self.root}/config; "
            f"exec {self.program} run --class {name} -- "
            f"dd if=/dev/zero of={self.root}/data.$SLURMD_NODENAME bs=64k oflag=direct count=100000"
        )
        words = ["srun", "--overlap", f"-N{len(nodes)}", f"-n{len(nodes)}", f"--nodelist={','.join(nodes)}", "sh", "-c", script]
        return self.start(*words)

    def discnice(self, node, *words):
        """A command of the product's on a node."""
        environment = {"XDG_RUNTIME_DIR": f"{self.root}/run/{node}", "XDG_CONFIG_HOME": f"{self.root}/config"}
        return self.inside(node, self.program, *words, env={**os.environ, **environment})

    def show(self, node):
        try:
            return json.loads(self.discnice(node, "class", "show", "backup", "--json").stdout)[0]
        except (ValueError, IndexError):
            return None

    def written(self, node):
        shown = self.show(node)
        return shown["written"] if shown else 0

    def allowed(self, node):
        shown = self.show(node)
        return shown["fleet"]["allowed"] if shown and shown["fleet"] else 0

    def told(self):
        told = [self.discnice(node, "fleet", "status").stdout.decode() + self.discnice(node, "status").stdout.decode() for node in NODES]
        return "\n".join(told)

    def policyd(self, node):
        """The process that holds the lease of this node: it has the node's folder in its environment."""
        mark = f"XDG_RUNTIME_DIR={self.root}/run/{node}".encode()
        found = []
        for name in os.listdir("/proc"):
            try:
                if not name.isdigit() or b"policyd" not in open(f"/proc/{name}/cmdline", "rb").read().split(b"\0"):
                    continue
                if mark in open(f"/proc/{name}/environ", "rb").read().split(b"\0"):
                    found.append(int(name))
            except OSError:
                continue
        return found


class Course:
    """What the nodes moved, second by second."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.rows = []
        self.highest = [0.0, 0.0]

    def look(self):
        self.rows.append((time.monotonic(), [self.cluster.written(node) for node in NODES]))
        for place, seconds in enumerate((1, 5)):
            begin = next((row for row in reversed(self.rows) if self.rows[-1][0] - row[0] >= seconds), None)
            if begin:
                moved = sum(self.rows[-1][1]) - sum(begin[1])
                self.highest[place] = max(self.highest[place], moved / (self.rows[-1][0] - begin[0]))

    def rates(self, seconds):
        begin = len(self.rows)
        for _ in range(seconds + 1):
            self.look()
            time.sleep(1)
        (before, first), (after, last) = self.rows[begin], self.rows[-1]
        return [(two - one) / (after - before) for one, two in zip(first, last)]


def jain(values):
    return sum(values) ** 2 / (len(values) * sum(value * value for value in values))


def scenario(cluster):
    failed = []
    course = Course(cluster)
    rows = []

    def step(what, seconds, is_right):
        rates = course.rates(seconds)
        right = is_right(rates)
        shown = "  ".join(f"{rate / 1e6:6.2f}" for rate in rates)
        rows.append(f"{what:<52} {shown}  {sum(rates) / 1e6:6.2f}  {'' if right else 'WRONG'}")
        print(rows[-1], flush=True)
        if not right:
            failed.append(what)

    third, floors = CAP / 3, 3 * FLOOR
    print(f"{'MB/s':<52} {'  '.join(f'{node:>6}' for node in NODES)}     ALL")
    first = cluster.job(["n1"])
    pool = CAP - 2 * FLOOR
    until("the first node has a lease", lambda: cluster.allowed("n1") >= 0.9 * pool)
    step("one node alone", 6, lambda rates: rates[0] >= 0.85 * pool)
    cluster.job(["n2", "n3"])
    until("equal parts", lambda: all(0.95 * third <= cluster.allowed(node) <= third for node in NODES), told=cluster.told)
    step("three nodes", 10, lambda rates: sum(rates) >= 0.9 * CAP and jain(rates) >= 0.98)

    cluster.redis.kill()
    cluster.redis.wait()
    step("server killed: until the leases end", 2, lambda rates: sum(rates) >= 0.8 * CAP)
    time.sleep(LEASE)
    step("server away for longer", 6, lambda rates: sum(rates) <= 1.5 * floors)
    cluster.redis_up()
    until("leases again", lambda: all(cluster.allowed(node) >= 0.95 * third for node in NODES))
    step("server back without its leases", 6, lambda rates: sum(rates) >= 0.85 * CAP)

    run("ip", "link", "set", "to-n2", "down")
    time.sleep(2 * LEASE)
    step("n2 cut off", 6, lambda rates: rates[1] <= 1.5 * FLOOR and sum(rates) >= 0.8 * CAP)
    run("ip", "link", "set", "to-n2", "up")
    until("n2 has a part again", lambda: all(cluster.allowed(node) >= 0.95 * third for node in NODES), 60)
    step("n2 back", 6, lambda rates: jain(rates) >= 0.97)

    stopped = cluster.policyd("n3")
    for daemon in stopped:
        os.kill(daemon, signal.SIGSTOP)
    time.sleep(LEASE + 1)
    step("policyd of n3 stopped", 6, lambda rates: rates[2] <= 1.5 * FLOOR)
    for daemon in stopped:
        os.kill(daemon, signal.SIGCONT)
    until("n3 has a part again", lambda: all(cluster.allowed(node) >= 0.95 * third for node in NODES))
    step("policyd of n3 continued", 6, lambda rates: jain(rates) >= 0.97)

    first.kill()
    print(f"highest: {course.highest[0] / CAP:.3f} of the cap in a second, {course.highest[1] / CAP:.3f} in five")
    if course.highest[1] > 1.02 * CAP:
        failed.append("the cap, in five seconds")
    return failed


def main():
    cluster.isolate([*cluster.NEEDED, "redis-server"])
    nodes = Cluster(os.path.abspath(sys.argv[1]))
    try:
        nodes.up()
        failed = scenario(nodes)
    finally:
        nodes.remove()
    if failed:
        sys.exit(f"failed: {'; '.join(failed)}")


if __name__ == "__main__":
    main()
