"""Slurm on this machine, in namespaces that end with the program: for `make fleet-test`, `fleet-steal` and `slurm-test`.

Each node has a network, a host name and System V memory of its own, and Debian's slurmd. slurmctld, and slurmdbd with MariaDB
if there is to be accounting, are on a bridge that joins the nodes.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time

BRIDGE, HERE, HOST = "dn0", "10.77.31.1", "dnslurm"
SPACES = ["ip", "nsenter", "unshare", "setpriv"]
NEEDED = ["slurmd", "slurmctld", "srun", "munged"]
ACCOUNTING = ["slurmdbd", "sacct", "mariadbd", "mariadb-install-db"]
QUIET = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}

SLURM = f"""ClusterName=dn
SlurmctldHost={HOST}({HERE})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={{root}}/munge/sock
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType={{storage}}
AccountingStorageHost={HERE}
AccountingStoragePass={{root}}/munge/sock
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
SwitchType=switch/none
ReturnToService=2
StateSaveLocation={{root}}/state
SlurmctldPidFile={{root}}/slurmctld.pid
SlurmctldLogFile={{root}}/slurmctld.log
SlurmdSpoolDir={{root}}/spool/%n
SlurmdPidFile={{root}}/slurmd.%n.pid
SlurmdLogFile={{root}}/slurmd.%n.log
SlurmctldPort=16817
SlurmdPort=16818
PlugStackConfig={{root}}/plugstack.conf
{{nodes}}
PartitionName=main Nodes={{names}} Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
"""
DATABASE = f"""AuthType=auth/munge
AuthInfo=socket={{root}}/munge/sock
DbdHost={HOST}
DbdAddr={HERE}
SlurmUser=root
LogFile={{root}}/slurmdbd.log
PidFile={{root}}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=slurm
"""


def isolate(needed, net=True):
    """Executes this program anew in namespaces in which all of it ends with it, unless it is there already; the network may stay."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    missing = [name for name in [*SPACES, *needed] if not shutil.which(name, path=path)]
    if os.geteuid() != 0 or missing:
        sys.exit(f"{os.path.basename(sys.argv[0])} needs the superuser and {', '.join(missing) or 'nothing else'}")
    if os.environ.pop("DISCNICE_INSIDE", None):
        os.environ["PATH"] = path
        return
    os.environ["DISCNICE_INSIDE"] = "1"
    words = ["unshare", *(["--net"] if net else []), "--uts", "--ipc", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    # Names of networks are files, which are to end as well.
    script = f'mkdir -p /run/netns && mount -t tmpfs none /run/netns && hostname {HOST} && exec "$@"'
    os.execvp(words[0], [*words, "sh", "-c", script, "sh", sys.executable, *sys.argv])


class Cluster:
    def __init__(self, names, accounting=False):
        self.names, self.accounting, self.daemons = names, accounting, {}
        self.root = tempfile.mkdtemp(prefix="discnice-slurm-", dir="/var/tmp")
        os.chmod(self.root, 0o755)
        for folder in ["munge", "state", "spool"]:
            os.mkdir(f"{self.root}/{folder}", 0o755)

    def configure(self, *lines):
        """Writes plugstack.conf."""
        with open(f"{self.root}/plugstack.conf", "w") as file:
            file.write("".join(f"{line}\n" for line in lines))

    def start(self, *words, **more):
        return subprocess.Popen(words, start_new_session=True, **{**QUIET, **more})

    def up(self):
        self.connect()
        self.write_settings()
        self.certify()
        if self.accounting:
            self.account()
        self.start("slurmctld", "-D")
        for name in self.names:
            # `ip netns exec` would mount /sys anew, without what slurmd looks for in it.
            script = self.daemon(name, f"hostname {name}; exec slurmd -D -N {name}")
            self.daemons[name] = self.start("nsenter", f"--net=/run/netns/{name}", "unshare", "--uts", "--ipc", "sh", "-c", script)
        all_nodes = ["srun", f"-N{len(self.names)}", f"-n{len(self.names)}", "hostname"]
        # Without its nodes it would wait for ever.
        until("all nodes are idle", lambda: quietly("timeout", "5", *all_nodes).returncode == 0, 60, self.logs)

    def daemon(self, name, script):
        """What starts a node's slurmd; a place for what else a node is to have."""
        return script

    def connect(self):
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", BRIDGE, "type", "bridge")
        run("ip", "addr", "add", f"{HERE}/24", "dev", BRIDGE)
        run("ip", "link", "set", BRIDGE, "up")
        for name in self.names:
            run("ip", "netns", "add", name)
            run("ip", "link", "add", f"to-{name}", "type", "veth", "peer", "name", "eth0", "netns", name)
            run("ip", "link", "set", f"to-{name}", "master", BRIDGE, "up")
            for words in (["addr", "add", f"{self.address(name)}/24", "dev", "eth0"], ["link", "set", "eth0", "up"], ["link", "set", "lo", "up"]):
                run("ip", "-n", name, *words)

    def address(self, name):
        return f"10.77.31.{11 + self.names.index(name)}"

    def write_settings(self):
        nodes = "\n".join(f"NodeName={name} NodeAddr={self.address(name)} CPUs=2 RealMemory=500 State=UNKNOWN" for name in self.names)
        storage = f"accounting_storage/{'slurmdbd' if self.accounting else 'none'}"
        with open(f"{self.root}/slurm.conf", "w") as file:
            file.write(SLURM.format(root=self.root, storage=storage, nodes=nodes, names=",".join(self.names)))
        if not os.path.exists(f"{self.root}/plugstack.conf"):
            self.configure()
        os.environ["SLURM_CONF"] = f"{self.root}/slurm.conf"

    def certify(self):
        munge = f"{self.root}/munge"
        with open(f"{munge}/key", "wb") as file:
            file.write(os.urandom(1024))
        os.chmod(f"{munge}/key", 0o400)
        self.start(
            "munged", "--foreground", "--force", f"--key-file={munge}/key", f"--socket={munge}/sock",
            f"--pid-file={munge}/pid", f"--log-file={munge}/log", f"--seed-file={munge}/seed",
        )
        until("munged listens", lambda: os.path.exists(f"{munge}/sock"))

    def account(self):
        """A database, and Slurm's program before it."""
        data, sock = f"{self.root}/data", f"{self.root}/mariadb"
        run("mariadb-install-db", "--no-defaults", f"--datadir={data}", "--skip-test-db", "--auth-root-authentication-method=normal", stdout=subprocess.DEVNULL)
        self.start("mariadbd", "--no-defaults", "--user=root", f"--datadir={data}", "--skip-networking", f"--socket={sock}", f"--pid-file={data}/pid")
        until("mariadbd listens", lambda: os.path.exists(sock))
        with open(f"{self.root}/slurmdbd.conf", "w") as file:
            file.write(DATABASE.format(root=self.root))
        os.chmod(f"{self.root}/slurmdbd.conf", 0o600)
        self.start("slurmdbd", "-D", env={**os.environ, "MYSQL_UNIX_PORT": sock})
        until("slurmdbd answers", lambda: quietly("timeout", "5", "sacctmgr", "-n", "list", "cluster").returncode == 0, 60, self.logs)

    def logs(self):
        """The ends of Slurm's own logs."""
        names = [name for name in sorted(os.listdir(self.root)) if name.endswith(".log")]
        return "".join(f"{name}:\n{open(f'{self.root}/{name}').read()[-1500:]}" for name in names)

    def inside(self, name, *words, **more):
        """A command on a node."""
        where = ["nsenter", "-t", str(self.daemons[name].pid), "--ipc", "--net", "--uts"]
        return subprocess.run([*where, *words], **{"capture_output": True, "timeout": 40, "stdin": subprocess.DEVNULL, **more})

    def remove(self):
        """Removes the files: the rest ends with this program."""
        shutil.rmtree(self.root, ignore_errors=True)


def run(*words, **more):
    subprocess.run(words, check=True, timeout=60, **more)


def quietly(*words):
    return subprocess.run(words, capture_output=True, timeout=20, stdin=subprocess.DEVNULL)


def until(what, is_so, seconds=30, told=lambda: ""):
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            sys.exit(f"never: {what} {told()}")
        time.sleep(0.1)
