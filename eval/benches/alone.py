#!/usr/bin/env python3
"""What a job that gives way loses while nobody else wants the disk: time with `discnice run --` against without.

    sudo python3 eval/benches/alone.py --folder DIR [--rounds N] [--jobs cp,rsync,...] [--large MIB]

Each job runs with a cold cache, plainly and with DiscNice, in turn (A B B A ...). Two times are taken: until the command has ended,
and until what it wrote is on the disk (syncfs(2)) as well. A plain job leaves its last writes to the kernel, which writes them
later, beside others perhaps; the second time is what the work takes. Prints the medians of both, and of the paired ratios.

cp: a tree of 12,000 small files. grep, tar: the same read. untar: written from an archive in memory; untar_static by busybox. rsync, dd:
one large file copied, and written. cat: the large file read. gc: git packs the small files anew. sqlite: 200,000 rows in one transaction.
DIR lies on the disk that is judged (`discnice-eval disk up`). Needs a release build, and the right to drop caches.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TARGET = os.environ.get("CARGO_TARGET_DIR", os.path.join(HERE, "../..", "target"))
DISCNICE = [os.path.join(TARGET, "release", "discnice"), "run", "--"]
DIRECTORIES, FILES_EACH, MEAN = 120, 100, 20 << 10
ROWS = "with recursive n(i) as (select 1 union all select i+1 from n where i<200000) select i, hex(randomblob(100)) from n"
JOBS = {
    "cp": "cp -r {tree} {out}",
    "rsync": "rsync -a --whole-file {large} {out}",
    "dd": "dd if=/dev/zero of={out} bs=1M count={mib} status=none",
    "cat": "cat {large}",
    "grep": "grep -r nothing-of-this-kind {tree}",
    "tar": "tar cf - {tree} 2>&1 | cat",
    "untar": "tar xf {archive} -C {folder} --transform s,^tree,copy,",
    "untar_static": "busybox tar xf {archive} -C {out}",
    "gc": "git -C {repository} repack -adfq",
    "sqlite": "sqlite3 {out} 'create table t as " + ROWS + "'",
}
NEEDS_DIRECTORY = {"untar_static"}


def prepare(folder, memory, mib):
    """Makes what the jobs read; returns where it is."""
    places = {"tree": f"{folder}/tree", "large": f"{folder}/large", "out": f"{folder}/copy", "repository": f"{folder}/repository",
              "archive": f"{memory}/archive", "folder": folder, "mib": mib}
    for directory in range(DIRECTORIES):
        os.makedirs(f"{places['tree']}/{directory}")
        for number in range(FILES_EACH):
            with open(f"{places['tree']}/{directory}/{number}", "wb") as out:
                out.write(os.urandom((directory * FILES_EACH + number) * 7919 % (2 * MEAN)))
    with open(places["large"], "wb") as out:
        for _ in range(mib):
            out.write(os.urandom(1 << 20))
    subprocess.run(["tar", "cf", places["archive"], "-C", folder, "tree"], check=True)
    shutil.copytree(places["tree"], places["repository"])
    git = ["git", "-C", places["repository"], "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "gc.auto=0"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "all"]):
        subprocess.run([*git, *words], check=True)
    return places


def once(name, places, prefix):
    """Runs a job; returns how long it took, and how long until all was written."""
    out = places["out"]
    subprocess.run(["rm", "-rf", out], check=True)
    if name in NEEDS_DIRECTORY:
        os.mkdir(out)
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w") as drop:
        drop.write("3")
    # What runs the job is cached again; nothing of it is the job's.
    subprocess.run([*prefix, "sh", "-c", ":"], check=True)
    time.sleep(1)
    begun = time.monotonic()
    subprocess.run([*prefix, "sh", "-c", JOBS[name].format(**places)], check=name != "grep", stdout=subprocess.DEVNULL)
    ended = time.monotonic()
    subprocess.run(["sync", "-f", places["folder"]], check=True)
    return ended - begun, time.monotonic() - begun


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", default=",".join(JOBS))
    parser.add_argument("--large", type=int, default=300)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder, tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        places = prepare(folder, memory, options.large)
        for name in options.jobs.split(","):
            if not shutil.which(JOBS[name].split()[0]):
                print(f"{name}: left out: no {JOBS[name].split()[0]}", file=sys.stderr)
                continue
            plain, ours = [], []
            for number in range(options.rounds):
                for kept, prefix in ((plain, []), (ours, DISCNICE))[:: -1 if number % 2 else 1]:
                    kept.append(once(name, places, prefix))
            show(name, plain, ours)


def show(name, plain, ours):
    words = [f"{name:13}"]
    for label, column in (("ended", 0), ("written", 1)):
        of = [statistics.median(run[column] for run in runs) for runs in (plain, ours)]
        ratio = statistics.median(b[column] / a[column] for a, b in zip(plain, ours))
        words.append(f"{label} {of[0]:7.2f} s, with DiscNice {of[1]:7.2f} s, {ratio:5.2f} times")
    print("   ".join(words), flush=True)


if __name__ == "__main__":
    main()
