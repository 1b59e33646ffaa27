#!/usr/bin/env python3
"""Figure 4 of Rate Windows: two tars, one of them a guest at a tenth of the disk.

The guest starts first and reads at full speed; the host joins; the guest gives way to its
threshold; the host ends; the guest comes back. Three runs in turn, as often as --rounds says:
the host alone, beside a guest that DiscNice holds (`--when busy`), beside one that it does not.

Samples the account of both trees every 5 ms (/proc/PID/io) and prints, as medians:
- how long the host took, and the ratio to alone; the same without the host's first second, in
  which the guest must notice it;
- how long after its first read the host has nine tenths of the rate that it has alone (the guest
  reacts before: between two streams a disk is slow even if each gets little);
- how long after the host's end the guest was back at half of its former speed.

Files are dropped from the cache by posix_fadvise; nothing else of the machine is touched.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
NOBODY = 65534
MIB = 1 << 20
ONSET = 1.0  # Seconds that the steady state leaves out.


def make_tree(root, size, each=8 * MIB):
    os.makedirs(root)
    block = os.urandom(MIB)
    for number in range(size // each):
        with open(f"{root}/{number:05d}", "wb") as file:
            for part in range(each // MIB):
                file.write(number.to_bytes(4, "big") + part.to_bytes(4, "big") + block[8:])
            file.flush()
            os.fsync(file.fileno())


def drop(root):
    for entry in os.scandir(root):
        fd = os.open(entry.path, os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def family(root):
    """Process ids of a session: each tar was started in one of its own."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat") as file:
                    if int(file.read().rsplit(")", 1)[1].split()[3]) == root:
                        found.append(entry)
            except (OSError, IndexError, ValueError):
                pass
    return found


class Job:
    """One tar, and what it has read by when."""

    def __init__(self, words, tree):
        self.process = subprocess.Popen([*words, "sh", "-c", f"tar -cf - {tree} | cat >/dev/null"],
                                        start_new_session=True, stderr=subprocess.DEVNULL)
        self.members, self.course, self.looked = [], [], 0.0

    def sample(self, now):
        if len(self.members) < 3 and now - self.looked > 0.02 or not self.course:
            self.members, self.looked = family(self.process.pid), now
        total = 0
        for pid in self.members:
            try:
                with open(f"/proc/{pid}/io") as file:
                    total += next(int(line.split()[1]) for line in file
                                  if line.startswith("read_bytes"))
            except (OSError, StopIteration):
                pass
        # One that has ended no longer counts, but what it read stays read.
        self.course.append((now, max(total, self.course[-1][1] if self.course else 0)))

    def read_by(self, when):
        return next((bytes for now, bytes in reversed(self.course) if now <= when), 0)

    def stop(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, 15)
            self.process.wait()


def run(host_words, guest_words, trees, lead, tail):
    """Returns host and guest, after the guest had `tail` seconds to come back."""
    for tree in trees:
        drop(tree)
    guest = Job(guest_words, trees[1]) if guest_words is not None else None
    host, begun, ended = None, time.monotonic(), None
    try:
        while ended is None or guest and time.monotonic() < ended + tail:
            now = time.monotonic()
            if host is None and now >= begun + (lead if guest else 0):
                host = Job(host_words, trees[0])
            for job in filter(None, (host, guest)):
                job.sample(now)
            if host and ended is None and host.process.poll() is not None:
                ended = time.monotonic()
            time.sleep(0.005)
    finally:
        for job in filter(None, (host, guest)):
            job.stop()
    host.ended = ended
    host.begun = next((now for now, bytes in host.course if bytes > 0), ended)
    return host, guest


def onset(host, rate):
    """Seconds from the host's first read until it has nine tenths of its rate, for 0.2 s."""
    for then, bytes in host.course:
        if then >= host.begun and host.read_by(then + 0.2) - bytes >= 0.9 * rate * 0.2:
            return then - host.begun
    return float("nan")


def steady(host):
    """The host's rate, its first second left out, in bytes per second."""
    begun = host.begun + ONSET
    last = host.course[-1][1]
    return (last - host.read_by(begun)) / (host.ended - begun)


def release(host, guest, lead):
    """Seconds from the host's end until the guest reads at half its former speed."""
    before = guest.read_by(host.begun) / lead
    for now, bytes in guest.course:
        if now > host.ended and guest.read_by(now + 0.2) - bytes > 0.5 * before * 0.2:
            return now - host.ended
    return float("nan")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--discnice", default=os.path.join(HERE, "../../target/release/discnice"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--host-mib", type=int, default=1500)
    parser.add_argument("--guest-mib", type=int, default=4000)
    parser.add_argument("--threshold", help="the guest's, for example 20M [default: a tenth of what "
                        "the host reads alone]")
    parser.add_argument("--guest", action="store_true", help="give way in CPU and priority too")
    parser.add_argument("--folder", default=".")
    parser.add_argument("--json", help="write the course of the last held run here")
    arguments = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="discnice-yielding-", dir=arguments.folder)
    os.chmod(folder, 0o755)
    trees = [f"{folder}/host", f"{folder}/guest"]
    user = []
    if os.geteuid() == 0:
        user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    lead, tail, results = 1.0, 4.0, {"alone": [], "held": [], "free": []}
    onsets, releases, rates = [], [], {"alone": [], "held": [], "free": []}
    try:
        make_tree(trees[0], arguments.host_mib * MIB)
        make_tree(trees[1], arguments.guest_mib * MIB)
        host, _ = run(user, None, trees, lead, tail)
        threshold = arguments.host_mib * MIB / (host.ended - host.begun) / 10
        words = arguments.threshold or f"{int(threshold)}B"
        if arguments.threshold:
            threshold = float(arguments.threshold.rstrip("M")) * MIB
        held = [*user, os.path.abspath(arguments.discnice), "run", "--disk", words, "--when",
                "busy", *(["--guest"] if arguments.guest else []), "--"]
        print(f"the guest's threshold is {threshold / 1e6:.1f} MB/s")
        for _ in range(arguments.rounds):
            for kind, guest_words in (("alone", None), ("held", held), ("free", user)):
                host, guest = run(user, guest_words, trees, lead, tail)
                results[kind].append(host.ended - host.begun)
                rates[kind].append(steady(host))
                if kind == "held":
                    onsets.append(onset(host, rates["alone"][-1]))
                    releases.append(release(host, guest, lead))
                    course = {"host": host.course, "guest": guest.course}
        alone = results["alone"]
        for kind, times in results.items():
            ratios = [a / b for a, b in zip(times, alone)]
            print(f"host {kind:<6} {statistics.median(times):6.2f} s, "
                  f"{statistics.median(ratios):.3f} of alone ({min(ratios):.3f} to "
                  f"{max(ratios):.3f}), after its first second "
                  f"{statistics.median(a / b for a, b in zip(rates['alone'], rates[kind])):.3f}")
        print(f"host at its rate after {statistics.median(onsets):.3f} s "
              f"(longest {max(onsets):.3f} s)")
        print(f"guest back at speed after {statistics.median(releases):.3f} s "
              f"(longest {max(releases):.3f} s)")
        if arguments.json:
            with open(arguments.json, "w") as file:
                json.dump(course, file)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
