#!/usr/bin/env python3
"""Does `discnice run --net R` hold real programs to R, and do they get R?

  clients     curl, wget, rsync over ssh, git, pip, node, asyncio, redis: rate and processor time
  servers     three nginx servers at 1.5, 3 and 6 MB/s, and the latency of an unlimited fourth
              (Rate Windows, figure 10)
  checkpoint  90 MB are sent while a web server gets busy (Rate Windows, figure 9)

All traffic goes through the loopback device, which --net-loopback makes count. The rate is what the
class was charged between the first and the last second of the transfer; processor time, of further
runs, is compared with that of the same program moving as many bytes without a limit. Programs that are not installed
are left out; --root names a folder with further ones. As root, everything but sshd runs as nobody.
"""
import argparse
import http.client
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
NOBODY = 65534
MB = 1_000_000
LINGER = 0.25

NGINX = """daemon off; worker_processes 1; pid {d}/pid; error_log {d}/errors;
events {{ worker_connections 1024; }}
http {{ access_log off; sendfile on; keepalive_requests 100000000;
 client_body_temp_path {d}/1; proxy_temp_path {d}/2; fastcgi_temp_path {d}/3; uwsgi_temp_path {d}/4;
 scgi_temp_path {d}/5; server {{ listen 127.0.0.1:{port}; root {root}; autoindex on; }} }}
"""

ASYNCIO = """import asyncio, sys
async def main():
    r, w = await asyncio.open_connection('127.0.0.1', int(sys.argv[1]))
    w.write(b'GET /data HTTP/1.0\\r\\n\\r\\n')
    while await r.read(1 << 18): pass
asyncio.run(main())
"""

NODE = """require('http').get('http://127.0.0.1:' + process.argv[2] + '/data', r => r.on('data', () => {}));
"""


class Bench:
    def __init__(self, arguments):
        self.discnice = os.path.abspath(arguments.discnice)
        self.folder = tempfile.mkdtemp(prefix="discnice-network-", dir="/var/tmp")
        os.chmod(self.folder, 0o755)
        self.www = os.path.join(self.folder, "www")
        os.makedirs(self.www)
        self.environment = dict(os.environ, HOME=self.folder)
        self.started, self.count = [], 0
        if arguments.root:
            root = os.path.abspath(arguments.root)
            paths = [f"{root}/usr/sbin", f"{root}/usr/bin", self.environment["PATH"]]
            self.environment["PATH"] = ":".join(paths)
            library = f"{root}/usr/lib/x86_64-linux-gnu:{root}/lib/x86_64-linux-gnu"
            self.environment["LD_LIBRARY_PATH"] = library
        self.user = {} if os.geteuid() else dict(user=NOBODY, group=NOBODY, extra_groups=[])
        self.python = self.interpreter()

    def interpreter(self):
        """A Python that the user may run: this one may lie in somebody's home."""
        for python in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
            try:
                subprocess.run([python, "-c", ""], check=True, **self.user)
                return python
            except (OSError, subprocess.CalledProcessError):
                pass
        sys.exit("network.py: no Python that an unprivileged user may run")

    def has(self, program):
        return shutil.which(program, path=self.environment["PATH"]) is not None

    def file(self, name, size):
        with open(os.path.join(self.www, name), "wb") as file:
            while size > 0:
                size -= file.write(os.urandom(min(size, 1 << 20)))
        return os.path.join(self.www, name)

    def text(self, name, text, mode=0o644):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def run(self, limits, command, name=None):
        """The words that run a command under limits, or without DiscNice."""
        if limits is None:
            return command
        named = ["--class", name] if name else []
        return [self.discnice, "run", *named, *limits, "--net-loopback", "--", *command]

    def start(self, command, **options):
        options = {**self.user, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL,
                   "env": self.environment, "start_new_session": True, **options}
        process = subprocess.Popen(command, **options)
        self.started.append(process)
        return process

    def stop(self, process):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(3)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def nginx(self, limits=None, name=None):
        """Starts a server; returns it and its port."""
        self.count += 1
        port = free_port()
        d = os.path.join(self.folder, f"nginx{self.count}")
        os.makedirs(d)
        os.chmod(d, 0o777)
        self.text(f"nginx{self.count}/conf", NGINX.format(d=d, port=port, root=self.www))
        server = self.start(self.run(limits, ["nginx", "-c", f"{d}/conf", "-e", f"{d}/errors"], name))
        wait_for(port)
        return server, port

    def charged(self, name):
        """Bytes sent and received of a class so far."""
        shown = subprocess.run([self.discnice, "class", "show", name, "--json"], env=self.environment,
                               capture_output=True, text=True, **self.user)
        try:
            found = json.loads(shown.stdout)[0]
        except (ValueError, IndexError, KeyError):
            return 0
        return found["sent"] + found["received"]

    def close(self):
        for process in self.started:
            self.stop(process)
        shutil.rmtree(self.folder, ignore_errors=True)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def is_up(port):
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return True
        except OSError:
            time.sleep(0.05)
    return False


def wait_for(port):
    if not is_up(port):
        raise SystemExit(f"network.py: no server came up on port {port}")


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
            # Sampling takes caches from whom it samples: processor time is that of runs that nobody samples.
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
    import zipfile
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


def latency(port, seconds, wanted="/small"):
    """99th percentile of the time of one small request after another, 200 a second."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    times, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        begun = time.perf_counter()
        connection.request("GET", wanted)
        connection.getresponse().read()
        times.append(time.perf_counter() - begun)
        time.sleep(0.005)
    return statistics.quantiles(times, n=100)[98] * 1e6


def load(bench, port, path, connections, seconds):
    return bench.start(["wrk", "-t1", f"-c{connections}", f"-d{seconds:g}s", f"http://127.0.0.1:{port}/{path}"])


def servers(bench, arguments):
    if not bench.has("wrk"):
        sys.exit("network.py: servers need wrk")
    limits = [1.5, 3.0, 6.0]
    for name, size in (("large", 1_700_000), ("small", 71_000)):
        bench.file(name, size)
    three = []
    for limit in limits:
        name = f"network-bench-{os.getpid()}-{limit:g}"
        three.append((limit, name, *bench.nginx(["--net-up", f"{limit:g}MB"], name)))
    _, fourth = bench.nginx()
    seconds = arguments.seconds
    for path in ("large", "small"):
        jobs = [load(bench, port, path, 16, seconds + 4) for _, _, _, port in three]
        time.sleep(2)
        before, begun = [bench.charged(name) for _, name, _, _ in three], time.monotonic()
        time.sleep(seconds)
        after, elapsed = [bench.charged(name) for _, name, _, _ in three], time.monotonic() - begun
        for (limit, _, _, _), first, last in zip(three, before, after):
            rate = (last - first) / elapsed / MB
            print(f"{path:<6} {limit:>4g} MB/s: {rate:6.3f} MB/s, {rate / limit:6.3f} of the limit", flush=True)
        for job in jobs:
            job.wait()
    alone, beside = [], []
    for _ in range(arguments.pairs or 5):
        alone.append(latency(fourth, 4))
        jobs = [load(bench, port, "small", 16, 6) for _, _, _, port in three]
        time.sleep(1)
        beside.append(latency(fourth, 4))
        for job in jobs:
            job.wait()
    one, other = statistics.median(alone), statistics.median(beside)
    print(f"fourth server, p99: {one:.0f} us alone, {other:.0f} us beside the three: {other / one:.3f}")


def checkpoint(bench, arguments):
    """A 90 MB checkpoint is sent over a link of 12 MB/s, the paper's, while a web server on it gets
    busy for a while. The link is a class around both; the checkpoint's own class is within its rate.
    The second run holds the checkpoint to 2 MB/s while the server is busy, by `class set`."""
    if not bench.has("wrk"):
        sys.exit("network.py: checkpoint needs wrk")
    bench.file("large", 1_700_000)
    sink, port = bench_sink()
    data = bench.file("checkpoint", 90 * MB)
    send = ("import socket, sys\ns = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n"
            "with open(sys.argv[2], 'rb') as f: s.sendfile(f)\n")
    program = bench.text("checkpoint.py", send)
    for held in (False, True):
        shown = figure(bench, held, [bench.python, program, str(port), data])
        print(f"\n{'with' if held else 'without'} a class for the checkpoint\n  time  checkpoint   server")
        for moment, job, server in shown:
            print(f"{moment:6.1f} {job:8.2f} MB/s {server:6.2f} MB/s", flush=True)
    sink.close()


def bench_sink():
    """Receives whatever comes; returns what listens and its port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        try:
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=drain, args=(connection,), daemon=True).start()
        except OSError:
            pass
    threading.Thread(target=serve, daemon=True).start()
    return listener, listener.getsockname()[1]


def drain(connection):
    with connection:
        while connection.recv(1 << 20):
            pass


def figure(bench, held, command):
    """One run; returns (seconds, checkpoint's rate, server's rate) for each second, MB/s."""
    bench.count += 1
    link = f"network-bench-{os.getpid()}-{bench.count}"
    own = link + "-checkpoint" if held else link
    server, port = bench.nginx(["--net-up", "12MB"], link)
    job = bench.start(bench.run(["--net-up", "12MB"], command, own))
    shown, begun, busy = [], time.monotonic(), None
    before = (begun, 0, 0)
    while job.poll() is None and len(shown) < 60:
        time.sleep(1)
        now, moved = time.monotonic(), sent(job.pid)
        total = bench.charged(link) + (bench.charged(own) if held else 0)
        span = now - before[0]
        shown.append((now - begun, (moved - before[1]) / span / MB,
                      (total - moved - before[2]) / span / MB))
        before = (now, moved, total - moved)
        if busy is None and now - begun > 2:
            busy = load(bench, port, "large", 8, 8)
            if held:
                subprocess.run([bench.discnice, "class", "set", own, "--net-up", "2MB"],
                               env=bench.environment, check=True, **bench.user)
        elif held and busy and busy.poll() is not None:
            subprocess.run([bench.discnice, "class", "set", own, "--net-up", "12MB"],
                           env=bench.environment, **bench.user)
    bench.stop(server)
    return shown


def sent(pid):
    """Bytes that a process has read, of which it sends each: rchar of /proc/PID/io."""
    try:
        with open(f"/proc/{pid}/io") as file:
            return int(file.readline().split()[1])
    except (OSError, ValueError):
        return 90 * MB


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["clients", "servers", "checkpoint"])
    parser.add_argument("--discnice", default=os.path.join(HERE, "../../target/release/discnice"))
    parser.add_argument("--root", help="a folder with further programs, as unpacked packages")
    parser.add_argument("--rates", default="1,10", help="MB/s, comma-separated")
    parser.add_argument("--only", help="clients, comma-separated")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--pairs", type=int, help="runs with and without a limit: of servers 5, of clients 2")
    arguments = parser.parse_args()
    bench = Bench(arguments)
    try:
        {"clients": clients, "servers": servers, "checkpoint": checkpoint}[arguments.part](bench, arguments)
    finally:
        bench.close()


if __name__ == "__main__":
    main()
