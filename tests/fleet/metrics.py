#!/usr/bin/env python3
"""Draws the dashboards from nodes under load, by a real Prometheus: `make fleet-metrics`.

Four nodes share a budget of a Redis: each has System V memory, a host name and `discnice metrics --listen` of its own, and jobs that
come and go. Prometheus scrapes them, with the recording rules that are shipped. Each query of each dashboard is then asked of it, and
has to answer; where the server of the budget fails, the alert's query has to count the nodes.

metrics.py DISCNICE [--minutes N] [--listen ADDRESS]. Needs the superuser and prometheus, redis-server. With --minutes the load goes on
for so long, and with --listen, such as 0.0.0.0:9090, Prometheus answers from outside, for a Grafana.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

import cluster
from cluster import QUIET, quietly, until

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGING = os.path.join(HERE, "..", "..", "packaging")
RULES = f"{PACKAGING}/prometheus/discnice.rules.yml"
NODES = [f"n{number}" for number in range(1, 5)]
REDIS, FIRST, LOCAL = 16380, 19201, "127.0.0.1:19200"
CONFIG = f"""[class.backup]
fleet = "redis://127.0.0.1:{REDIS}/backup"
[class.names]
meta-ops = 300
disk = "50M"
"""
PROMETHEUS = f"""global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: ["{RULES}"]
scrape_configs:
  - job_name: discnice
    static_configs: [{{targets: [{", ".join(f'"127.0.0.1:{FIRST + number}"' for number in range(len(NODES)))}]}}]
"""


class Fleet:
    def __init__(self, program, listen):
        self.program, self.listen = program, listen
        self.root = tempfile.mkdtemp(prefix="discnice-metrics-", dir="/var/tmp")
        for name, text in [("prometheus.yml", PROMETHEUS), ("config/discnice/config.toml", CONFIG)]:
            os.makedirs(os.path.dirname(f"{self.root}/{name}"), mode=0o700, exist_ok=True)
            with open(f"{self.root}/{name}", "w") as file:
                file.write(text)

    def start(self, *words, **more):
        return subprocess.Popen(words, start_new_session=True, **{**QUIET, **more})

    def up(self):
        self.redis = self.start("redis-server", "--port", str(REDIS), "--save", "", "--dir", self.root)
        settings = ["fleet", "set", f"redis://127.0.0.1:{REDIS}/backup", "--cap", "8M", "--nodes", "8", "--lease", "3s"]
        until("redis-server answers", lambda: quietly(self.program, *settings).returncode == 0)
        for number, name in enumerate(NODES):
            run = f"{self.root}/{name}"
            os.mkdir(run, 0o700)
            environment = {**os.environ, "XDG_RUNTIME_DIR": run, "XDG_CONFIG_HOME": f"{self.root}/config"}
            words = ["unshare", "--uts", "--ipc", sys.executable, __file__, self.program, "--node", name, str(FIRST + number), run]
            self.start(*words, env=environment)
        self.start("prometheus", f"--config.file={self.root}/prometheus.yml", f"--storage.tsdb.path={self.root}/data", f"--web.listen-address={self.listen}")
        until("all nodes are scraped", lambda: self.ask("sum(up)") == [len(NODES)], 60)

    def ask(self, query):
        """The values that Prometheus answers with."""
        port = self.listen.rpartition(":")[2]
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": query}), timeout=10) as answer:
                return [float(one["value"][1]) for one in json.load(answer)["data"]["result"]]
        except OSError:
            return []


def node(program, name, port, folder):
    """A node: its endpoint, and jobs that come and go until the program ends."""
    quietly("hostname", name)
    subprocess.Popen([program, "metrics", "--listen", port], **QUIET)
    os.mkdir(f"{folder}/tree")
    write = ["dd", "if=/dev/zero", f"of={folder}/data", "bs=64k", "oflag=direct"]
    while True:
        length = random.uniform(4, 10)
        jobs = [["backup", *write, "count=100000"], ["names", "sh", "-c", f"cd {folder}/tree; while :; do touch 1 2 3; rm 1 2 3; done"]]
        for words in jobs:
            subprocess.Popen([program, "run", "-c", words[0], "--", "timeout", str(length), *words[1:]], **QUIET)
        time.sleep(length + random.uniform(0, 3))


def queries():
    """Each query of each dashboard, for all classes."""
    for name in sorted(os.listdir(f"{PACKAGING}/grafana")):
        with open(f"{PACKAGING}/grafana/{name}") as file:
            panels = json.load(file)["panels"]
        for target in (target for panel in panels for target in panel.get("targets", [])):
            yield name, target["expr"].replace("$class", ".*").replace("$__rate_interval", "15s")


def scenario(fleet, minutes):
    failed = []

    def check(what, is_right, found):
        print(f"{'ok   ' if is_right else 'WRONG'} {what}: {found}", flush=True)
        if not is_right:
            failed.append(what)

    checked = quietly("promtool", "check", "rules", RULES)
    check("promtool check rules", checked.returncode == 0, checked.stdout.decode().split("\n")[1].strip())
    print(f"load for {minutes} minutes", flush=True)
    time.sleep(60 * minutes)
    for name, query in queries():
        found = fleet.ask(query)
        check(f"{name} {query}", bool(found), " ".join(f"{value:.4g}" for value in found[:6]))
    used = fleet.ask('discnice:fleet_used:ratio{class="backup"}')
    check("what the nodes use of the cap", len(used) == 1 and 0.1 < used[0] < 1.05, used)
    without = 'discnice:fleet_without_lease:count{class="backup"}'
    fleet.redis.send_signal(signal.SIGKILL)
    until("the nodes have no lease", lambda: fleet.ask(without) == [len(NODES)], 60, lambda: fleet.ask(without))
    check("nodes without a lease when the server was killed", True, fleet.ask(without))
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("discnice")
    parser.add_argument("--minutes", type=float, default=0.5)
    parser.add_argument("--listen", default=LOCAL)
    parser.add_argument("--node", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.node:
        return node(options.discnice, *options.node)
    cluster.isolate(["prometheus", "promtool", "redis-server"], net=options.listen == LOCAL)
    quietly("ip", "link", "set", "lo", "up")
    fleet = Fleet(os.path.abspath(options.discnice), options.listen)
    try:
        fleet.up()
        failed = scenario(fleet, options.minutes)
    finally:
        shutil.rmtree(fleet.root, ignore_errors=True)
    return f"failed: {'; '.join(failed)}" if failed else 0


if __name__ == "__main__":
    sys.exit(main())
