#!/usr/bin/env python3
"""What others behind the same uplink feel of a background job, and what the job loses when it is alone.

usage: uplink.py [--rounds N] [--seconds S] [--jobs curl-up,curl-down,...]      (root, as it makes network namespaces)

Four namespaces: the job's machine, another machine, their router, and a server. Between router and server is a link
of 20 Mbit/s each way with 20 ms of delay and a queue of 300 ms that drops what does not fit; it is emulated by this
program (two TUN devices), as netem is missing on many kernels. The other machine loads pages (50 objects of 10 KB over
six connections, with pauses of 1 s) and has a call (50 packets of 160 bytes a second, which come back). DISCNICE names
the program. For each job: alone, beside nothing, and beside the job, bare and under `discnice run --`; interleaved.
"""
import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from uplink_link import SERVER, SPACES, inside, join_link, link, make_spaces, set_congestion, sh, space
from uplink_others import PAGES, foreground, serve

DISCNICE = os.environ.get("DISCNICE", "target/release/discnice")

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
