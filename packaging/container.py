#!/usr/bin/env python3
"""Sets what a container runs, for a test: container.py CONFIG PIDS COMMAND..., in the namespace of processes at PIDS if there is one."""

import json
import sys

path, processes, *command = sys.argv[1:]
with open(path) as file:
    config = json.load(file)
config["process"]["args"] = command
config["process"]["terminal"] = False
config["root"]["readonly"] = False
for namespace in config["linux"]["namespaces"]:
    if namespace["type"] == "pid" and processes:
        namespace["path"] = processes
        for kind in config["process"]["capabilities"].values():
            kind.append("CAP_SYS_PTRACE")
with open(path, "w") as file:
    json.dump(config, file)
