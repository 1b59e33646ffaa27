"""The rate and processor time of usual clients that fetch a file under a limit: the part `clients` of network.py."""
import os
import shutil
import statistics
import subprocess
import threading
import time
import zipfile

from network_bench import MB, NOBODY, free_port, is_up, wait_for

LINGER = 0.25

ASYNCIO = """import asyncio, sys
async def main():
    r, w = await asyncio.open_connection('127.0.0.1', int(sys.argv[1]))
    w.write(b'GET /data HTTP/1.0\\r\\n\\r\\n')
    while await r.read(1 << 18): pass
asyncio.run(main())
"""

NODE = """require('http').get('http://127.0.0.1:' + process.argv[2] + '/data', r => r.on('data', () => {}));
"""


def timed(bench, command, name=None):
    """Runs a command to its end; returns elapsed and processor seconds, and samples of the charge."""
    samples = []
    start = time.monotonic()
    process = bench.start(command, cwd=bench.folder)
    ended = []
    waiter = threading.Thread(target=lambda: ended.append(os.wait4(process.pid, 0)))
    waiter.start()
    while waiter.is_alive():
        if name:
            samples.append((time.monotonic(), bench.charged(name)))
        waiter.join(LINGER)
    elapsed = time.monotonic() - start
    process.returncode = os.waitstatus_to_exitcode(ended[0][1])
    usage = ended[0][2]
    return elapsed, usage.ru_utime + usage.ru_stime, samples, process.returncode


def steady(samples):
    """Bytes a second between the first and the last second in which something moved."""
    moving = [(a, b) for a, b in zip(samples, samples[1:]) if b[1] > a[1]]
    if len(moving) < 8:
        return 0.0
    first, last = moving[2][0], moving[-2][0]
    return (last[1] - first[1]) / (last[0] - first[0])


def clients(bench, arguments):
    rates = [float(rate) for rate in arguments.rates.split(",")]
    print(f"{'client':<14} {'limit':>8} {'rate':>7} {'of it':>7} {'CPU':>7} {'free':>7} {'added':>7}")
    for rate in rates:
        size = int(rate * MB * arguments.seconds)
        bench.file("data", size)
        server, port = bench.nginx()
        for client, make in CLIENTS.items():
            if arguments.only and client not in arguments.only.split(","):
                continue
            command = make(bench, port, size)
            if command is None:
                continue
            bench.count += 1
            name = f"network-bench-{os.getpid()}-{bench.count}"
            limits = ["--net", f"{rate:g}MB"]
            elapsed, _, samples, status = timed(bench, bench.run(limits, command(), name), name)
            # Sampling takes caches from what is sampled: processor time is that of runs that are not.
            free, cpu = [], []
            for _ in range(arguments.pairs or 2):
                free.append(timed(bench, command())[1])
                cpu.append(timed(bench, bench.run(limits, command()))[1])
            added = statistics.median(held - alone for held, alone in zip(cpu, free)) / elapsed
            got = steady(samples) / MB
            note = f"  exit {status}" if status else ""
            print(f"{client:<14} {rate:>6g}MB {got:>7.3f} {got / rate:>7.3f} {statistics.median(cpu):>7.3f} "
                  f"{statistics.median(free):>7.3f} {added * 100:>6.2f}%{note}", flush=True)
        bench.stop(server)


def fetch(*words):
    return lambda bench, port, size: (
        lambda: [word.format(port=port) for word in words]) if bench.has(words[0]) else None


def script(name, text, interpreter=None):
    """A script for the interpreter; for Python without one."""
    def make(bench, port, size):
        path = bench.text(name, text)
        words = interpreter or bench.python
        return (lambda: [words, path, str(port)]) if bench.has(words) else None
    return make


def fresh(bench):
    """A folder of its own for each run, in which the client may write."""
    bench.count += 1
    folder = os.path.join(bench.folder, f"out{bench.count}")
    os.makedirs(folder)
    os.chmod(folder, 0o777)
    return folder


def git(bench, port, size):
    if not bench.has("git"):
        return None
    made = f"""set -e; cd {bench.www}; rm -rf work repo.git; git init -q work; cp data work/blob; cd work
        git add blob; git -c user.name=n -c user.email=e commit -qm all; cd ..
        git clone -q --bare work repo.git; cd repo.git; git repack -adq; git update-server-info; chmod -R a+rX ."""
    subprocess.run(["sh", "-c", made], check=True, env=bench.environment)
    return lambda: ["git", "clone", "-q", f"http://127.0.0.1:{port}/repo.git", fresh(bench) + "/clone"]


def pip(bench, port, size):
    index = os.path.join(bench.www, "simple", "bulk")
    os.makedirs(index, exist_ok=True)
    wheel = os.path.join(index, "bulk-1.0-py3-none-any.whl")
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_STORED) as archive:
        archive.write(os.path.join(bench.www, "data"), "bulk/data")
        archive.writestr("bulk-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: bulk\nVersion: 1.0\n")
        archive.writestr("bulk-1.0.dist-info/WHEEL",
                         "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("bulk-1.0.dist-info/RECORD", "")
    python = bench.python
    if subprocess.run([python, "-m", "pip", "--version"], capture_output=True, **bench.user).returncode:
        return None
    return lambda: [python, "-m", "pip", "download", "-q", "--no-cache-dir", "--no-deps", "--index-url",
                    f"http://127.0.0.1:{port}/simple/", "-d", fresh(bench), "bulk"]


def rsync(bench, port, size):
    if os.geteuid() or not all(map(bench.has, ["rsync", "ssh", "sshd", "ssh-keygen"])):
        return None
    d = os.path.join(bench.folder, f"ssh{bench.count}")
    os.makedirs(d)
    os.makedirs("/run/sshd", exist_ok=True)
    for key in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{d}/{key}"], check=True)
    os.chown(f"{d}/user", NOBODY, NOBODY)
    ssh_port = free_port()
    shutil.copy(f"{d}/user.pub", f"{d}/authorized")
    bench.start([shutil.which("sshd", path=bench.environment["PATH"]), "-D", "-f", "/dev/null", "-p", str(ssh_port),
                 "-o", f"HostKey={d}/host", "-o", f"AuthorizedKeysFile={d}/authorized", "-o", "StrictModes=no",
                 "-o", "PermitRootLogin=yes", "-o", "ListenAddress=127.0.0.1", "-o", "UsePAM=no",
                 "-o", "PidFile=none"], user=0, group=0)
    if not is_up(ssh_port):
        print("rsync-ssh: sshd does not start here")
        return None
    shell = (f"ssh -p {ssh_port} -i {d}/user -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null "
             f"-o LogLevel=ERROR -F /dev/null")
    return lambda: ["rsync", "-W", "-e", shell, f"root@127.0.0.1:{bench.www}/data", fresh(bench) + "/data"]


def redis(bench, port, size):
    if not all(map(bench.has, ["redis-server", "redis-benchmark"])):
        return None
    server_port = free_port()
    bench.start(["redis-server", "--port", str(server_port), "--save", "", "--bind", "127.0.0.1"])
    wait_for(server_port)
    value = 65536
    return lambda: ["redis-benchmark", "-p", str(server_port), "-t", "set", "-d", str(value), "-c", "10",
                    "-n", str(size // value), "-q"]


CLIENTS = {
    "curl": fetch("curl", "-s", "-o", "/dev/null", "http://127.0.0.1:{port}/data"),
    "wget": fetch("wget", "-q", "-O", "/dev/null", "http://127.0.0.1:{port}/data"),
    "node": script("get.js", NODE, "node"),
    "asyncio": script("get.py", ASYNCIO),
    "redis": redis,
    "rsync-ssh": rsync,
    "git-http": git,
    "pip": pip,
}
