#!/usr/bin/env python3
"""What others behind the same uplink feel of a background job, and what the job loses when it is alone.

usage: uplink.py [--rounds N] [--seconds S] [--bare] [--jobs up,down,...]      (root, as it makes network namespaces)

Four namespaces: the job's machine, another machine, their router, and a server. Between router and server is a link
of 20 Mbit/s each way with 20 ms of delay and a queue of 300 ms that drops what does not fit; it is emulated by this
program (two TUN devices), as netem is missing on many kernels. The other machine loads pages (50 objects of 10 KB over
six connections, with pauses of 1 s) and has a call (50 packets of 160 bytes a second, which come back). DISCNICE names
the program. For each job: alone, beside nothing, and beside the job, bare and under `discnice run --`; interleaved.
"""
import argparse
import collections
import ctypes
import fcntl
import http.server
import os
import select
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

DISCNICE = os.environ.get("DISCNICE", "target/release/discnice")
SPACES = ["job", "other", "router", "server"]
SERVER = "10.91.3.2"
RATE, DELAY, QUEUE = 20e6 / 8, 0.020, 0.300
OBJECTS, OBJECT = 50, 10_000
SINK, SOURCE, PAGES, ECHO = 9000, 9001, 9002, 9003


def space(name):
    return f"discnice-{name}"


def sh(*words, check=True):
    return subprocess.run(words, check=check, capture_output=True, text=True)


def inside(name, *words):
    return ["ip", "netns", "exec", space(name), *words]


class Way:
    """One direction of the link."""

    def __init__(self, source, sink):
        self.source, self.sink, self.free, self.flying = source, sink, 0.0, collections.deque()

    def take(self, now):
        for _ in range(64):
            try:
                packet = os.read(self.source, 65536)
            except BlockingIOError:
                return
            begin = max(self.free, now)
            if begin - now <= QUEUE:
                self.free = begin + len(packet) / RATE
                self.flying.append((self.free + DELAY, packet))

    def give(self, now):
        while self.flying and self.flying[0][0] <= now:
            try:
                os.write(self.sink, self.flying.popleft()[1])
            except OSError:
                pass


def tun(name):
    """A TUN device `wan0` in a namespace."""
    handle = os.open(f"/run/netns/{space(name)}", os.O_RDONLY)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(handle, 0x40000000):
        raise OSError(ctypes.get_errno(), "setns")
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, 0x400454CA, struct.pack("16sH22x", b"wan0", 0x1001))
    return device


def link():
    # Late packets would be a queue of this program's making.
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(10))
    ends = [tun("router"), tun("server")]
    ways = [Way(*ends), Way(*reversed(ends))]
    poll = select.epoll()
    for end in ends:
        poll.register(end, select.EPOLLIN)
    while True:
        heads = [way.flying[0][0] for way in ways if way.flying]
        poll.poll(max(0.0, min(heads) - time.monotonic()) if heads else 1)
        for way in ways:
            way.take(time.monotonic())
            way.give(time.monotonic())


def serve():
    """What the server does, in its namespace."""

    class Page(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            size = int(self.path.strip("/") or OBJECT)
            self.send_response(200)
            self.send_header("Content-Length", str(size))
            self.end_headers()
            left = size
            while left > 0:
                self.wfile.write(bytes(min(left, 1 << 16)))
                left -= 1 << 16

        def do_PUT(self):
            left = int(self.headers["Content-Length"])
            while left > 0:
                left -= len(self.rfile.read(min(left, 1 << 16)))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *words):
            pass

    class Server(http.server.ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 64

        def handle_error(self, *words):
            pass

    def echo():
        here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        here.bind(("", ECHO))
        while True:
            packet, back = here.recvfrom(2048)
            here.sendto(packet, back)

    threading.Thread(target=echo, daemon=True).start()
    Server(("", PAGES), Page).serve_forever()


def load_page():
    """Seconds that a page takes over six connections."""
    todo, lock = list(range(OBJECTS)), threading.Lock()

    def fetch():
        conn = socket.create_connection((SERVER, PAGES))
        conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stream = conn.makefile("rb")
        while True:
            with lock:
                if not todo:
                    return
                todo.pop()
            conn.sendall(f"GET /{OBJECT} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            while stream.readline() not in (b"\r\n", b""):
                pass
            stream.read(OBJECT)

    begun = time.monotonic()
    threads = [threading.Thread(target=fetch) for _ in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    return time.monotonic() - begun


def call(seconds, out):
    """Round trips of a call's packets; lost ones count as a second."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.connect((SERVER, ECHO))
    sock.settimeout(0.001)
    begun, sent, back = time.monotonic(), 0, {}
    while (now := time.monotonic()) - begun < seconds + 1:
        if now - begun < seconds and now - begun >= sent / 50:
            sock.send(struct.pack("Id", sent, now) + bytes(148))
            sent += 1
        try:
            number, at = struct.unpack("Id", sock.recv(2048)[:16])
            back[number] = time.monotonic() - at
        except (TimeoutError, ConnectionRefusedError):
            pass
    out.extend(back.get(number, 1.0) for number in range(sent))


def foreground(seconds):
    """Prints page times and round trips of a call; in the other machine's namespace."""
    trips, pages = [], []
    caller = threading.Thread(target=call, args=(seconds, trips))
    caller.start()
    begun = time.monotonic()
    while time.monotonic() - begun < seconds - 1:
        pages.append(load_page())
        time.sleep(1)
    caller.join()
    print(" ".join(f"{page:.4f}" for page in pages))
    print(" ".join(f"{trip:.4f}" for trip in trips))


GO = """package main
import ("io";"net/http";"os";"strconv")
type zeros struct{}
func (zeros) Read(b []byte) (int, error) { return len(b), nil }
func main() {
 size, _ := strconv.ParseInt(os.Args[3], 10, 64)
 if os.Args[1] == "up" {
  r, _ := http.NewRequest("PUT", os.Args[2]+"/", io.LimitReader(zeros{}, size)); r.ContentLength = size
  a, e := http.DefaultClient.Do(r); if e != nil { panic(e) }; a.Body.Close(); return
 }
 a, e := http.Get(os.Args[2]+"/"+os.Args[3]); if e != nil { panic(e) }; io.Copy(io.Discard, a.Body)
}
"""


def jobs(folder):
    """Commands that move so many bytes, by name."""
    url = f"http://{SERVER}:{PAGES}"

    def file(size):
        path = os.path.join(folder, f"file-{size}")
        if not os.path.exists(path):
            with open(path, "wb") as out:
                out.truncate(size)
        return path

    go = os.path.join(folder, "go-copy")
    return {
        "curl-up": lambda size: ["curl", "-s", "-T", file(size), "-H", "Expect:", f"{url}/"],
        "curl-down": lambda size: ["curl", "-s", "-o", "/dev/null", f"{url}/{size}"],
        "python-down": lambda size: [sys.executable, "-c",
            f"import urllib.request as u; r = u.urlopen('{url}/{size}')\nwhile r.read(65536): pass"],
        "go-up": lambda size: [go, "up", url, str(size)],
        "go-down": lambda size: [go, "down", url, str(size)],
    }


def build_go(folder):
    source = os.path.join(folder, "copy.go")
    with open(source, "w") as out:
        out.write(GO)
    made = subprocess.run(["go", "build", "-o", os.path.join(folder, "go-copy"), source], cwd=folder,
                          env={**os.environ, "CGO_ENABLED": "0", "GO111MODULE": "off"})
    return made.returncode == 0


def moved(space_name, device, what):
    text = sh(*inside(space_name, "cat", f"/sys/class/net/{device}/statistics/{what}_bytes"), check=False).stdout
    return int(text or 0)


def measure(job, seconds, treatment):
    """Foreground beside a job: pages, trips, and the job's bytes a second."""
    background = None
    if job:
        prefix = [DISCNICE, "run", "--"] if treatment == "discnice" else []
        background = subprocess.Popen(inside("job", *prefix, *job(1 << 30)), stdin=subprocess.DEVNULL,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        time.sleep(5)
    before = [moved("job", "e0", way) for way in ("tx", "rx")]
    begun = time.monotonic()
    shown = sh(*inside("other", sys.executable, __file__, "foreground", str(seconds))).stdout.splitlines()
    after = [moved("job", "e0", way) for way in ("tx", "rx")]
    rate = max(b - a for a, b in zip(before, after)) / (time.monotonic() - begun)
    if background:
        os.killpg(background.pid, signal.SIGKILL)
        background.wait()
        time.sleep(1)
    return [[float(one) for one in line.split()] for line in shown] + [rate]


def alone(job, treatment, size=25_000_000):
    """Bytes a second of a job that is alone."""
    prefix = [DISCNICE, "run", "--"] if treatment == "discnice" else []
    begun = time.monotonic()
    subprocess.run(inside("job", *prefix, *job(size)), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, check=True)
    return size / (time.monotonic() - begun)


def make_spaces():
    for name in SPACES:
        sh("ip", "netns", "add", space(name))
        sh("ip", "-n", space(name), "link", "set", "dev", "lo", "up")
    for number, name in enumerate(["job", "other"], 1):
        sh("ip", "link", "add", "e0", "netns", space(name), "type", "veth", "peer", "name", f"to-{name}", "netns",
           space("router"))
        for where, device, end in [(name, "e0", 2), ("router", f"to-{name}", 1)]:
            sh("ip", "-n", space(where), "addr", "add", f"10.91.{number}.{end}/24", "dev", device)
            sh("ip", "-n", space(where), "link", "set", "dev", device, "up")
        sh("ip", "-n", space(name), "route", "add", "default", "via", f"10.91.{number}.1")
    sh(*inside("router", "sysctl", "-qw", "net.ipv4.ip_forward=1"))


def join_link():
    for name, end in [("router", 1), ("server", 2)]:
        sh("ip", "-n", space(name), "addr", "add", f"10.91.3.{end}/24", "dev", "wan0")
        sh("ip", "-n", space(name), "link", "set", "dev", "wan0", "up")
    sh("ip", "-n", space("server"), "route", "add", "10.91.0.0/16", "via", "10.91.3.1")


def set_congestion(name):
    for one in SPACES:
        sh(*inside(one, "sh", "-c", f"echo {name} > /proc/sys/net/ipv4/tcp_congestion_control"))


def part(values, percent):
    return sorted(values)[min(len(values) - 1, int(len(values) * percent / 100))]


def row(name, pages, trips, rate):
    print(f"{name:34} page p50 {part(pages, 50):.3f} p95 {part(pages, 95):.3f} s   call p50 "
          f"{1e3 * part(trips, 50):.0f} p95 {1e3 * part(trips, 95):.0f} ms   job {rate / 1e3:.0f} kB/s", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=15)
    parser.add_argument("--jobs", default="curl-up,curl-down,python-down,go-up,go-down")
    parser.add_argument("--treatments", default="bare,discnice")
    parser.add_argument("--congestion", default="reno")
    parser.add_argument("--what", default="beside,alone")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    started = []
    with tempfile.TemporaryDirectory() as folder:
        known = jobs(folder)
        names = args.jobs.split(",")
        if any(name.startswith("go") for name in names) and not build_go(folder):
            names = [name for name in names if not name.startswith("go")]
        try:
            make_spaces()
            set_congestion(args.congestion)
            started.append(subprocess.Popen([sys.executable, __file__, "link"]))
            time.sleep(1)
            join_link()
            started.append(subprocess.Popen(inside("server", sys.executable, __file__, "serve")))
            time.sleep(1)
            compare(args, known, names)
        finally:
            for one in started:
                one.terminate()
                one.wait()
            for name in SPACES:
                sh("ip", "netns", "del", space(name), check=False)


def compare(args, known, names):
    cells = [(None, "nothing")] + [(name, how) for name in names for how in args.treatments.split(",")]
    print(f"load {os.getloadavg()[0]:.1f}, {args.congestion}")
    if "beside" in args.what:
        seen = {cell: ([], [], []) for cell in cells}
        for _ in range(args.rounds):
            for name, how in cells:
                got = measure(known.get(name), args.seconds, how)
                for kept, one in zip(seen[name, how], got):
                    kept.extend(one if isinstance(one, list) else [one])
        for (name, how), (pages, trips, rates) in seen.items():
            row(f"{name or 'nothing'}, {how}" if name else "alone", pages, trips, statistics.median(rates))
    if "alone" in args.what:
        for name in names:
            pairs = [[alone(known[name], how) for how in ("bare", "discnice")] for _ in range(args.rounds)]
            bare, held = (statistics.median(column) for column in zip(*pairs))
            print(f"{name:34} alone: {bare / 1e3:.0f} kB/s bare, {held / 1e3:.0f} under discnice, "
                  f"{statistics.median(b / a for a, b in pairs):.3f}", flush=True)
    print(f"load {os.getloadavg()[0]:.1f}")


if len(sys.argv) > 1 and sys.argv[1] == "link":
    link()
elif len(sys.argv) > 1 and sys.argv[1] == "serve":
    serve()
elif len(sys.argv) > 1 and sys.argv[1] == "foreground":
    foreground(float(sys.argv[2]))
else:
    main()
