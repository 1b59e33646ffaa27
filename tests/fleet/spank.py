#!/usr/bin/env python3
"""Limits of Slurm jobs by the plugin, on real Slurm: `make slurm-test`.

slurmctld and one slurmd of Debian's run in namespaces of their own, in which all of it ends with this program. Jobs of an
ordinary user write 8 MiB, which takes two seconds at 4 MiB/s and no time without a limit.

spank.py DISCNICE PLUGIN. Needs the superuser and slurm-wlm, munge, gcc.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
# Slurm wants a user with an account: nobody.
USER = 65534
NEEDED = ["slurmd", "slurmctld", "srun", "sbatch", "munged", "unshare", "setpriv", "ip", "gcc"]
# What writes 8 MiB in less had no limit of 4 MiB/s; a little passes at once.
LEAST = 1600
ADDRESS = "10.77.32.1"

SLURM = """ClusterName=dn
SlurmctldHost=dnslurm({address})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={root}/munge/sock
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SwitchType=switch/none
ReturnToService=2
StateSaveLocation={root}/state
SlurmctldPidFile={root}/slurmctld.pid
SlurmctldLogFile={root}/slurmctld.log
SlurmdSpoolDir={root}/spool
SlurmdPidFile={root}/slurmd.pid
SlurmdLogFile={root}/slurmd.log
PlugStackConfig={root}/plugstack.conf
NodeName=dnslurm NodeAddr={address} CPUs=2 RealMemory=500 State=UNKNOWN
PartitionName=main Nodes=dnslurm Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
"""


class Node:
    def __init__(self, program, plugin):
        self.program, self.plugin = program, plugin
        self.root = tempfile.mkdtemp(prefix="discnice-spank-", dir="/var/tmp")
        os.chmod(self.root, 0o755)
        self.work = f"{self.root}/work"
        for folder, mode in [("munge", 0o700), ("state", 0o700), ("spool", 0o755), ("work", 0o755), ("work/run", 0o700)]:
            os.mkdir(f"{self.root}/{folder}", mode)
        for folder in ["", "/run"]:
            os.chown(self.work + folder, USER, USER)
        for name, more in [("dynamic", []), ("static", ["-static"])]:
            run("gcc", "-O", *more, f"{HERE}/../guests/steady.c", "-o", f"{self.root}/{name}")
        with open(f"{self.root}/slurm.conf", "w") as file:
            file.write(SLURM.format(root=self.root, address=ADDRESS))
        self.configure()

    def configure(self, *defaults):
        words = [f"optional {self.plugin} discnice={self.program}", f"task={HERE}/../../packaging/slurm/discnice-task", *defaults]
        with open(f"{self.root}/plugstack.conf", "w") as file:
            file.write(" ".join(words) + "\n")

    def up(self):
        munge = f"{self.root}/munge"
        with open(f"{munge}/key", "wb") as file:
            file.write(os.urandom(1024))
        os.chmod(f"{munge}/key", 0o400)
        os.chmod(munge, 0o755)
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.Popen([
            "munged", "--foreground", "--force", f"--key-file={munge}/key", f"--socket={munge}/sock",
            f"--pid-file={munge}/pid", f"--log-file={munge}/log", f"--seed-file={munge}/seed",
        ], **quiet)
        until("munged listens", lambda: os.path.exists(f"{munge}/sock"))
        os.environ["SLURM_CONF"] = f"{self.root}/slurm.conf"
        subprocess.Popen(["slurmctld", "-D"], **quiet)
        subprocess.Popen(["slurmd", "-D", "-N", "dnslurm"], **quiet)
        until("the node is idle", lambda: self.ask("timeout", "5", "srun", "hostname").returncode == 0, 30, self.logs)

    def logs(self):
        """The ends of Slurm's own logs."""
        return "".join(open(f"{self.root}/{name}.log").read()[-1500:] for name in ["slurmctld", "slurmd"])

    def ask(self, *words, **variables):
        """A command of the ordinary user's, with its output as text."""
        environment = {**os.environ, "HOME": self.work, "XDG_RUNTIME_DIR": f"{self.work}/run", **variables}
        words = ["timeout", "30", "setpriv", "--reuid", str(USER), "--regid", str(USER), "--clear-groups", *words]
        return subprocess.run(words, capture_output=True, text=True, env=environment, cwd=self.work, stdin=subprocess.DEVNULL)

    def took(self, *words, program="dynamic", **variables):
        """How many milliseconds each task wrote."""
        asked = self.ask("srun", *words, "sh", "-c", f"exec {self.root}/{program} {self.work}/data.$SLURM_PROCID", **variables)
        return numbers(asked.stdout) if asked.returncode == 0 else asked

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


def run(*words):
    subprocess.run(words, check=True, timeout=60)


def until(what, is_so, seconds=30, told=lambda: ""):
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            sys.exit(f"never: {what} {told()}")
        time.sleep(0.1)


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
    node.configure("disk=4M")
    found = node.took()
    check("a site's default", all_held(found, 1), found)
    found = node.took("--disk", "unlimited")
    check("an option instead of the default", isinstance(found, list) and found[0] < LEAST, found)
    node.configure("disk=4M", "task=/nonexistent")
    found = node.took()
    check("without discnice-task", isinstance(found, list) and found[0] < LEAST, found)
    node.configure("disk=nonsense")
    found = node.took()
    check("with a wrong default", isinstance(found, list) and found[0] < LEAST, found)
    return failed


def main():
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    missing = [name for name in NEEDED if not shutil.which(name, path=path)]
    if os.geteuid() != 0 or missing:
        sys.exit(f"slurm-test needs the superuser and {', '.join(missing) or 'nothing else'}")
    if os.environ.get("DISCNICE_INSIDE") != "1":
        os.environ["DISCNICE_INSIDE"] = "1"
        words = ["unshare", "--net", "--uts", "--ipc", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        # Slurm wants an address that is not the loopback's.
        script = f'ip link set lo up && ip link add dn0 type bridge && ip addr add {ADDRESS}/24 dev dn0 && ip link set dn0 up'
        script += ' && hostname dnslurm && exec "$@"'
        os.execvp(words[0], [*words, "sh", "-c", script, "sh", sys.executable, *sys.argv])
    del os.environ["DISCNICE_INSIDE"]
    os.environ["PATH"] = path
    node = Node(*(os.path.abspath(word) for word in sys.argv[1:3]))
    try:
        node.up()
        failed = scenario(node)
    finally:
        shutil.rmtree(node.root, ignore_errors=True)
    if failed:
        sys.exit(f"failed: {'; '.join(failed)}")


if __name__ == "__main__":
    main()
