#!/usr/bin/env python3
"""What a polite job costs a foreground, and what politeness costs the job, with programs not ours.

    python3 eval/benches/polite.py cpu|fio|sqlite [--rounds N] [--seconds S] [--folder DIR] [--polite-only]
    python3 eval/benches/polite.py idle [--rounds N] [--seconds S]
    python3 eval/benches/polite.py resume [--rounds N] [--seconds S]
    python3 eval/benches/polite.py elsewhere [--rounds N] [--seconds S]

cpu: gcc compiles on the processor on which xz compresses. fio: random reads of the disk that dd reads from end to
end. sqlite: transactions, each with an fsync, on the disk that dd writes to. Each round takes the foreground
alone, beside the job, and beside `discnice run --polite -- JOB`, which learned its targets before, when nobody
else was there. Where the disk is too fast to be contended for, `discnice-eval disk up` makes one that is not;
give its folder.
idle: xz under `discnice run --polite` on a machine that should be idle: what it waits and what its regulator uses in S
seconds; then N pairs of short runs, plainly and politely.
resume: how soon xz runs again after a loop that had its processor for S seconds has ended.
elsewhere: how long a client is suspended in the S seconds after its server has slowed down to half its pace, on a machine that
should be idle.

Rounds are interleaved; medians are printed. Needs a release build, and gcc, xz, fio, sqlite3 and taskset; no rights.
"""

import argparse
import contextlib
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TARGET = os.environ.get("CARGO_TARGET_DIR", os.path.join(HERE, "../..", "target"))
DISCNICE = os.path.join(TARGET, "release", "discnice")
ONE_PROCESSOR = ["taskset", "-c", "1"]
FUNCTION = "double f{0}(double*a,int n){{double s=0;for(int i=0;i<n;i++)for(int j=0;j<i;j++)s+=a[i]*a[j]/{0}.5;return s;}}\n"
SQUEEZE = [*ONE_PROCESSOR, "xz", "-6", "-T1", "-c", "/dev/urandom"]
# So long the job runs undisturbed to learn its targets, and before each foreground.
LESSON, HEAD_START = 20, 5
# Clock ticks a second in /proc.
TICKS = 100


class Scene:
    """A folder of its own for targets and shared memory, so that nothing else is disturbed."""

    def __init__(self, folder):
        self.folder = folder
        self.environment = dict(os.environ, XDG_RUNTIME_DIR=folder, XDG_STATE_HOME=folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def polite(self, *words):
        return [DISCNICE, "run", "--polite", "--no-probation", "--", *words]

    @contextlib.contextmanager
    def job(self, words):
        """Runs a job in a session of its own until the block ends, however that ends."""
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        job = subprocess.Popen(words, env=self.environment, start_new_session=True, **quiet)
        try:
            yield job
        finally:
            os.killpg(job.pid, signal.SIGKILL)
            job.wait()

    def timed(self, words, times=1):
        begun = time.monotonic()
        for _ in range(times):
            subprocess.run(words, env=self.environment, check=True, stdout=subprocess.DEVNULL)
        return time.monotonic() - begun

    def told(self, job):
        """What `discnice status` tells of a polite job."""
        told = subprocess.run([DISCNICE, "status", "--json"], env=self.environment, capture_output=True, check=True)
        return next(one for one in json.loads(told.stdout)["jobs"] if one["process"] == job.pid)


class Cpu:
    def __init__(self, scene, seconds):
        source = scene.path("work.c")
        with open(source, "w") as out:
            out.writelines(FUNCTION.format(number) for number in range(200))
        compiling = [*ONE_PROCESSOR, "gcc", "-O3", "-c", "-o", "/dev/null", source]
        scene.timed(compiling)
        times = max(1, round(seconds / scene.timed(compiling)))
        self.foreground = ["sh", "-c", f"for i in $(seq {times}); do {' '.join(compiling)}; done"]
        self.job = SQUEEZE


class Fio:
    def __init__(self, scene, seconds):
        large = scene.path("large")
        scene.timed(["dd", "if=/dev/urandom", f"of={large}", "bs=1M", "count=256", "oflag=direct", "status=none"])
        self.job = ["sh", "-c", f"while :; do dd if={large} of=/dev/null bs=256k iflag=direct status=none; done"]
        reading = [
            "fio", "--name=foreground", f"--filename={scene.path('small')}", "--size=256M", "--io_size=1T", "--minimal",
            "--rw=randread", "--bs=16k", "--direct=1", "--ioengine=psync", "--norandommap=1",
        ]
        scene.timed([*reading, "--create_only=1"])
        self.foreground = fitted(scene, seconds, lambda count: [*reading, f"--number_ios={count}"])


class Sqlite:
    def __init__(self, scene, seconds):
        # Writes the same file over and over.
        write = f"dd if=/dev/zero of={scene.path('large')} bs=256k count=1024 oflag=direct,dsync conv=notrunc status=none"
        self.job = ["sh", "-c", f"while :; do {write}; done"]
        database, script = scene.path("database"), scene.path("script")
        scene.timed(["sqlite3", database, "create table t(x)"])

        def inserting(count):
            with open(script, "w") as out:
                out.writelines(["insert into t values(randomblob(16000));\n"] * count)
            return ["sqlite3", database, f".read {script}"]

        self.foreground = fitted(scene, seconds, inserting)


def fitted(scene, seconds, words):
    """The command `words(count)` with a count that takes about so many seconds."""
    count = 50
    took = scene.timed(words(count))
    while took < 2:
        count *= 2
        took = scene.timed(words(count))
    return words(max(1, round(count * seconds / took)))


def contend(load, scene, rounds, seconds, polite_only):
    load = load(scene, seconds)
    with scene.job(scene.polite(*load.job)):
        time.sleep(LESSON)
    # Its regulator notes its end, and saves.
    time.sleep(2)
    plain, polite = [], []
    for number in range(rounds):
        alone = scene.timed(load.foreground)
        told = [f"alone {alone:.1f} s"]
        kinds = [("beside", load.job, plain), ("polite", scene.polite(*load.job), polite)]
        for kind, words, slower in kinds[1:] if polite_only else kinds:
            with scene.job(words) as job:
                time.sleep(HEAD_START)
                took = scene.timed(load.foreground)
                if kind == "polite":
                    now = scene.told(job)
                    kind = f"suspended {now['suspensions']} times, {now['suspended_seconds']:.1f} s, polite"
            slower.append(100 * (took / alone - 1))
            told.append(f"{kind} {took:.1f} s")
        print(f"round {number + 1}: {', '.join(told)}", flush=True)
    for kind, slower in (("the job", plain), ("the polite job", polite)):
        if slower:
            print(f"the foreground takes {statistics.median(slower):+.1f} % longer beside {kind} (median of {rounds})")


def idle(scene, rounds, seconds):
    """What the job is kept from running, and what its regulator takes from it at most; then pairs of runs."""
    with scene.job(scene.polite(*SQUEEZE)) as job:
        time.sleep(LESSON)
        was = scene.told(job)
        begun, used = time.monotonic(), ticks(was["regulator"])
        time.sleep(seconds)
        now = scene.told(job)
        used = (ticks(now["regulator"]) - used) / TICKS
        waited = now["suspended_seconds"] - was["suspended_seconds"]
        lasted = time.monotonic() - begun
    print(
        f"in {lasted:.0f} s the job was suspended for {waited:.2f} s and its regulator used the processor for {used:.2f} s: "
        f"at most {100 * (waited + used) / lasted:.2f} %",
        flush=True,
    )
    data = scene.path("data")
    with open(data, "wb") as out:
        out.write(os.urandom(8 << 20))
    squeeze = [*ONE_PROCESSOR, "xz", "-6", "-T1", "-k", "-c", data]
    scene.timed(scene.polite(*squeeze))
    longer = []
    for number in range(rounds):
        kinds = [squeeze, scene.polite(*squeeze)]
        order = kinds if number % 2 == 0 else kinds[::-1]
        took = {id(words): scene.timed(words) for words in order}
        longer.append(100 * (took[id(kinds[1])] / took[id(kinds[0])] - 1))
    middle = statistics.quantiles(longer, n=4)
    print(
        f"a polite job on an idle machine takes {statistics.median(longer):+.2f} % longer "
        f"(median of {rounds} pairs, middle half {middle[0]:+.2f} to {middle[2]:+.2f})"
    )


def ticks(pid):
    """Processor time of a process, in ticks of 10 ms."""
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def resume(scene, rounds, seconds):
    waits = []
    with scene.job(scene.polite(*SQUEEZE)) as job:
        time.sleep(LESSON)
        for number in range(rounds):
            with scene.job([*ONE_PROCESSOR, "sh", "-c", "while :; do :; done"]):
                before = ticks(job.pid)
                time.sleep(seconds)
                used = ticks(job.pid) - before
            ended, last = time.monotonic(), ticks(job.pid)
            # Two ticks, because the last one may be of the time before.
            while ticks(job.pid) < last + 2 and time.monotonic() < ended + 300:
                time.sleep(0.01)
            waits.append(time.monotonic() - ended)
            print(f"load {number + 1}: the job used {used / TICKS:.1f} s of it, then ran after {waits[-1]:.2f} s", flush=True)
            time.sleep(HEAD_START)
    print(
        f"a job runs again {statistics.median(waits):.2f} s after a load of {seconds:.0f} s "
        f"(median of {rounds}, at most {max(waits):.2f} s)"
    )


class Server:
    """Sends each client a line at a time, at a pace that can be set."""

    def __init__(self, pace):
        self.pace = pace
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            client, _ = self.listener.accept()
            with contextlib.suppress(OSError), client:
                while True:
                    client.sendall(b"line\n")
                    time.sleep(1 / self.pace)


CLIENT = """import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as server, open(sys.argv[2], "a") as log:
    for line in server.makefile():
        log.write(line)
        log.flush()
"""


def elsewhere(scene, rounds, seconds):
    shares = []
    for number in range(rounds):
        server, log = Server(50), scene.path(f"log{number}")
        client = ["/usr/bin/python3", "-c", CLIENT, str(server.port), log]
        words = [DISCNICE, "run", "--polite", "--no-probation", "--metric", f"lines:{log}", "--", *client]
        with scene.job(words) as job:
            time.sleep(LESSON)
            was = scene.told(job)
            server.pace = 25
            time.sleep(seconds)
            now = scene.told(job)
        suspended = now["suspended_seconds"] - was["suspended_seconds"]
        times = now["suspensions"] - was["suspensions"]
        shares.append(100 * suspended / seconds)
        print(
            f"round {number + 1}: suspended {times} times, {suspended:.1f} of {seconds:.0f} s, let on {now.get('elsewhere', 0)} times",
            flush=True,
        )
    print(f"a client of a slow server is suspended for {statistics.median(shares):.1f} % of the time (median of {rounds})")


def main():
    contended = {"cpu": Cpu, "fio": Fio, "sqlite": Sqlite}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=(*contended, "idle", "resume", "elsewhere"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--folder", default="/var/tmp", help="on the disk to contend for")
    parser.add_argument("--polite-only", action="store_true", help="without the rounds beside the plain job")
    options = parser.parse_args()
    if not os.access(DISCNICE, os.X_OK):
        sys.exit(f"build first: {DISCNICE}")
    # Jobs end with their measurement, also when it is told to end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        scene = Scene(folder)
        if options.what in contended:
            contend(contended[options.what], scene, options.rounds, options.seconds, options.polite_only)
        else:
            {"idle": idle, "resume": resume, "elsewhere": elsewhere}[options.what](scene, options.rounds, options.seconds)
        # The last job's regulator notes its end, and saves here.
        time.sleep(2)


if __name__ == "__main__":
    main()
