"""Web servers under limits, loaded by wrk: the parts `servers` and `checkpoint` of network.py."""
import http.client
import os
import socket
import statistics
import subprocess
import sys
import threading
import time

from network_bench import MB


def load(bench, port, path, connections, seconds):
    return bench.start(["wrk", "-t1", f"-c{connections}", f"-d{seconds:g}s", f"http://127.0.0.1:{port}/{path}"])


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
