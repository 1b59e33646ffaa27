#!/usr/bin/env python3
"""Limits of Slurm jobs by the plugin, on real Slurm: `make slurm-test`.

Jobs of an ordinary user write 8 MiB, which takes two seconds at 4 MiB/s and no time without a limit.

spank.py DISCNICE PLUGIN. Needs the superuser and slurm-wlm, slurmdbd, mariadb-server, munge, gcc.
"""

import os
import re
import shutil
import sys

import cluster
from cluster import run, until

WHERE = os.path.dirname(os.path.abspath(__file__))
# Slurm wants a user with an account: nobody.
USER = 65534
# What writes 8 MiB in less had no limit of 4 MiB/s; a little passes at once.
LEAST = 1600
NODE = "n1"


class Node(cluster.Cluster):
    """One node with the plugin."""

    def __init__(self, program, plugin):
        super().__init__([NODE], accounting=True)
        self.program, self.plugin = program, plugin
        self.work = f"{self.root}/work"
        for folder, mode in [("work", 0o755), ("work/run", 0o700)]:
            os.mkdir(f"{self.root}/{folder}", mode)
            os.chown(f"{self.root}/{folder}", USER, USER)
        for name, more in [("dynamic", []), ("static", ["-static"])]:
            run("gcc", "-O", *more, f"{WHERE}/../guests/steady.c", "-o", f"{self.root}/{name}")
        self.defaults()

    def defaults(self, *words):
        """Sets the words behind the plugin's name."""
        scripts = f"{WHERE}/../../packaging/slurm"
        known = [f"discnice={self.program}", f"task={scripts}/discnice-task", f"ended={scripts}/discnice-ended"]
        self.configure(" ".join([f"optional {self.plugin}", *known, *words]))

    def ask(self, *words, **variables):
        """A command of the ordinary user's on the node, with its output as text."""
        environment = {**os.environ, "HOME": self.work, "XDG_RUNTIME_DIR": f"{self.work}/run", **variables}
        words = ["timeout", "30", "setpriv", "--reuid", str(USER), "--regid", str(USER), "--clear-groups", *words]
        return self.inside(NODE, *words, text=True, env=environment, cwd=self.work)

    def took(self, *words, program="dynamic", **variables):
        """How many milliseconds each task wrote."""
        asked = self.ask("srun", *words, "sh", "-c", f"exec {self.root}/{program} {self.work}/data.$SLURM_PROCID", **variables)
        return numbers(asked.stdout) if asked.returncode == 0 else asked

    def comment(self, *words):
        """What sacct shows of a job with these options that writes 8 MiB by two tasks each."""
        asked = self.ask("sbatch", "--wait", "--parsable", "--output=/dev/null", "-n2", *words, "--wrap", f"srun sh -c 'exec {self.root}/dynamic {self.work}/data.$SLURM_PROCID'")
        job = asked.stdout.strip()
        said = lambda: self.ask("sacct", "-X", "-n", "-P", "-j", job, "-o", "State,AdminComment").stdout.strip()
        until("the job is in the accounts", lambda: said().startswith("COMPLETED"), told=lambda: f"{asked} {said()}")
        return said()

    def batch(self, script, *words):
        path = f"{self.work}/job"
        with open(path, "w") as file:
            file.write(script)
        asked = self.ask("sbatch", "--wait", "--output", f"{self.work}/out.%A.%a", *words, path)
        outputs = sorted(name for name in os.listdir(self.work) if name.startswith("out."))
        text = ""
        for name in outputs:
            text += open(f"{self.work}/{name}").read()
            os.unlink(f"{self.work}/{name}")
        return text if asked.returncode == 0 else asked


def numbers(text):
    return [int(word) for word in text.split()]


def all_held(found, count, least=LEAST):
    return isinstance(found, list) and len(found) == count and all(one >= least for one in found)


def scenario(node):
    failed = []

    def check(what, is_right, found):
        print(f"{'ok   ' if is_right else 'WRONG'} {what}: {found}", flush=True)
        if not is_right:
            failed.append(what)

    found = node.took()
    check("no option", isinstance(found, list) and found[0] < LEAST, found)
    found = node.ask("srun", "env").stdout
    check("no option leaves no variable", "DISCNICE" not in found and "LD_PRELOAD" not in found, len(found))
    for program in ["dynamic", "static"]:
        found = node.took("--disk", "4M", program=program)
        check(f"srun --disk 4M, {program}", all_held(found, 1), found)
    static = node.ask("srun", "--disk", "4M", f"{node.root}/static", f"{node.work}/data")
    check("a static task itself", all_held(numbers(static.stdout), 1), static.stdout)
    found = node.took("-n2", "--disk", "4M")
    check("two tasks share", all_held(found, 2, 2 * LEAST), found)
    found = node.took("--export=NONE", "--disk", "4M")
    check("--export=NONE", all_held(found, 1), found)
    library = "/lib/x86_64-linux-gnu/libm.so.6"
    own = node.ask("srun", "--disk", "4M", "sh", "-c", "echo $LD_PRELOAD; grep -c discnice /proc/$$/maps", LD_PRELOAD=library)
    words = own.stdout.split()
    check("the user's own LD_PRELOAD", words[:1] == [library] and words[1:] != ["0"], own.stdout + own.stderr)
    ended = node.ask("srun", "--disk", "4M", "sh", "-c", "exit 7")
    check("exit status", ended.returncode == 7, ended.returncode)
    prolog = f"{node.work}/prolog"
    with open(prolog, "w") as file:
        file.write("#!/bin/sh\necho export FROM_PROLOG=yes\n")
    os.chmod(prolog, 0o755)
    found = node.ask("srun", "--disk", "4M", f"--task-prolog={prolog}", "sh", "-c", "echo $FROM_PROLOG").stdout
    check("a prolog", found == "yes\n", found)
    script = f"#!/bin/sh\n#SBATCH --disk 4M\n{node.root}/static {node.work}/one\nsrun {node.root}/dynamic {node.work}/two\n"
    found = node.batch(script)
    check("#SBATCH, script and step", isinstance(found, str) and all_held(numbers(found), 2), found)
    found = node.batch(f"#!/bin/sh\n#SBATCH --disk=4M\nexec {node.root}/static {node.work}/$SLURM_ARRAY_TASK_ID\n", "--array=1-2")
    check("an array", isinstance(found, str) and all_held(numbers(found), 2), found)
    for option, value in [("--disk", "quick"), ("--meta-ops", "0"), ("--net", "5Q"), ("--discnice-class", "a/b")]:
        wrong = node.ask("srun", option, value, "touch", f"{node.work}/started")
        told = [line for line in wrong.stderr.splitlines() if line.startswith("discnice: ")]
        is_right = wrong.returncode != 0 and len(told) == 1 and not os.path.exists(f"{node.work}/started")
        check(f"{option} {value}", is_right, wrong.stderr)
    wrong = node.batch("#!/bin/sh\n#SBATCH --disk quick\ntouch started\n")
    check("#SBATCH with a wrong value", not isinstance(wrong, str), wrong)
    found = node.took("--discnice-class", "mine", "--disk", "4M")
    listed = node.ask(node.program, "class", "list").stdout
    check("--discnice-class", all_held(found, 1) and "mine" in listed, found)
    check("no class of a job is left", "slurm-" not in listed, listed)
    node.defaults(f"scontrol={shutil.which('scontrol')}")
    found = node.comment("--disk", "4M")
    moved = re.fullmatch(r"COMPLETED\|n1 read=\d+B written=(\d+)B net=0B meta-ops=\d+ held=(\d+\.\d)s disk=4194304B/s", found)
    check("its figures in sacct", bool(moved) and int(moved[1]) >= 15 << 20 and float(moved[2]) > 1, found)
    found = node.comment()
    check("no figures of a job without limits", found == "COMPLETED|", found)
    node.defaults("disk=4M")
    found = node.took()
    check("a site's default", all_held(found, 1), found)
    found = node.took("--disk", "unlimited")
    check("an option instead of the default", isinstance(found, list) and found[0] < LEAST, found)
    node.defaults("disk=4M", "task=/nonexistent")
    found = node.took()
    check("without discnice-task", isinstance(found, list) and found[0] < LEAST, found)
    node.defaults("disk=nonsense")
    found = node.took()
    check("with a wrong default", isinstance(found, list) and found[0] < LEAST, found)
    return failed


def main():
    cluster.isolate([*cluster.NEEDED, *cluster.ACCOUNTING, "sbatch", "gcc"])
    node = Node(*(os.path.abspath(word) for word in sys.argv[1:3]))
    try:
        node.up()
        failed = scenario(node)
    finally:
        node.remove()
    if failed:
        sys.exit(f"failed: {'; '.join(failed)}")


if __name__ == "__main__":
    main()
