#!/usr/bin/env python3
"""Limits of containers under real podman, of the superuser and of an ordinary user: `make podman-test`.

A program writes 8 MiB, which takes two seconds at 4 MiB/s and no time without a limit.

podman.py DISCNICE [IMAGE]. IMAGE is the one of `make packages`. Needs the superuser, podman, uidmap, runc, gcc, musl-tools.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time

WHERE = os.path.dirname(os.path.abspath(__file__))
GUESTS = f"{WHERE}/../guests"
RUNTIME = f"{WHERE}/../../packaging/discnice-runc"
PROGRAMS = {"glibc": ["gcc"], "musl": ["musl-gcc"], "static": ["gcc", "-static"]}
LIBRARIES = {
    "/lib64/ld-linux-x86-64.so.2": "lib64/ld-linux-x86-64.so.2",
    "/lib/x86_64-linux-gnu/libc.so.6": "lib/x86_64-linux-gnu/libc.so.6",
    "/lib/x86_64-linux-musl/libc.so": "lib/ld-musl-x86_64.so.1",
}
# An ordinary user that no system has, with 65,536 numbers for the users of its containers.
USER, NAME, OTHERS = 61043, "discnice-podman", 3000000
LIMIT, RATE = "4M", 4 << 20
JOB = ["/bin/endless", "/tmp/written", "anew"]
# Milliseconds that a program takes for 8 MiB at 4 MiB/s, of which a little passes at once, and with no limit.
HELD, FREE = range(1600, 2600), range(1000)
# Podman lowers its own limits to these, and containers may not have more where the superuser lacks CAP_SYS_RESOURCE.
SETTINGS = """
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]
netns = "none"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
"""


def run(*words, **more):
    return subprocess.run(words, check=True, stdout=subprocess.DEVNULL, **more)


def written(process):
    """Bytes that a process has written, and those that were dropped before they reached a disk."""
    with open(f"/proc/{process}/io") as file:
        account = dict(line.split(": ") for line in file)
    return int(account["wchar"]), int(account["cancelled_write_bytes"])


def rate(process):
    """Bytes a second in ten seconds in which nothing was dropped: that need not be paid for."""
    while True:
        before, dropped = written(process)
        time.sleep(10)
        after, dropped_since = written(process)
        if dropped_since == dropped:
            return (after - before) / 10


def isolate():
    """Goes into a mount namespace in which the ordinary user has a name, and starts over."""
    if "DISCNICE_ISOLATED" not in os.environ:
        os.environ["DISCNICE_ISOLATED"] = "1"
        os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv])
    for file, line in [
        ("passwd", f"{NAME}:x:{USER}:{USER}::/nonexistent:/bin/sh"),
        ("group", f"{NAME}:x:{USER}:"),
        ("subuid", f"{NAME}:{OTHERS}:65536"),
        ("subgid", f"{NAME}:{OTHERS}:65536"),
    ]:
        with tempfile.NamedTemporaryFile("w+", dir="/tmp") as made:
            with open(f"/etc/{file}") as before:
                made.write(f"{before.read()}{line}\n")
            made.flush()
            os.chmod(made.name, 0o644)
            run("mount", "--bind", made.name, f"/etc/{file}")


class Engine:
    """Podman of one user, with an image of our programs."""

    def __init__(self, program, user):
        self.user, self.failed = user, 0
        self.root = tempfile.mkdtemp(prefix="discnice-podman-", dir="/var/tmp")
        os.chmod(self.root, 0o755)
        for folder in ["home", "run", "context/bin", "context/tmp", "context/lib64", "context/lib/x86_64-linux-gnu"]:
            os.makedirs(f"{self.root}/{folder}", 0o700)
        # Where both are installed, the runtime finds the program beside it.
        for file in [program, f"{os.path.dirname(program)}/libdiscnice.so", RUNTIME]:
            shutil.copy(file, self.root)
        self.program, self.runtime = f"{self.root}/discnice", f"{self.root}/discnice-runc"
        self.image()
        with open(f"{self.root}/containers.conf", "w") as file:
            file.write(SETTINGS)
        run("chown", "-R", f"{user}:{user}", self.root)
        self.environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "HOME": f"{self.root}/home",
            "XDG_RUNTIME_DIR": f"{self.root}/run",
            "CONTAINERS_CONF": f"{self.root}/containers.conf",
        }
        # The superuser's own containers are elsewhere.
        self.storage = ["--root", f"{self.root}/storage", "--runroot", f"{self.root}/run/storage"]

    def image(self):
        context = f"{self.root}/context"
        for name, build in PROGRAMS.items():
            run(*build, "-O", f"{GUESTS}/steady.c", "-o", f"{context}/bin/{name}")
        run("gcc", "-static", "-D_GNU_SOURCE", f"{GUESTS}/endless.c", "-o", f"{context}/bin/endless")
        run("gcc", "-static", "-x", "c", "-", "-o", f"{context}/bin/waits", input=b"#include <unistd.h>\nint main(void) { for (;;) pause(); }\n")
        for file, place in LIBRARIES.items():
            shutil.copy(file, f"{context}/{place}")
        with open(f"{context}/Containerfile", "w") as file:
            file.write('FROM scratch\nCOPY . /\n')
        with open(f"{self.root}/Again", "w") as file:
            file.write('FROM programs\nRUN ["/bin/glibc", "/tmp/data"]\n')

    def command(self, *words, before=(), runtime=None):
        """Podman's subcommand as this user, with the runtime of the annotations unless another is named."""
        as_user = ["setpriv", "--reuid", str(self.user), "--regid", str(self.user), "--clear-groups"]
        # The superuser's other containers are elsewhere.
        storage = ["--root", f"{self.root}/storage", "--runroot", f"{self.root}/run/storage"]
        return [*as_user, *before, "podman", *storage, "--runtime", runtime or self.runtime, *words]

    def podman(self, *words, **more):
        words = self.command(*words, **more)
        return subprocess.run(words, env=self.environment, cwd=self.root, capture_output=True, text=True, timeout=120)

    def judge(self, what, is_so, done):
        said = " | ".join(f"{done.stdout}{done.stderr}".split("\n")).strip(" |")
        self.failed += not is_so
        print(f"{'ok ' if is_so else 'NOT'}  {'root' if self.user == 0 else 'user'}  {what}: {said[-200:]}", flush=True)

    def took(self, what, wanted, *words, **more):
        """Judges how many milliseconds a program in a container says that it wrote."""
        done = self.podman(*words, **more)
        numbers = [int(line) for line in done.stdout.splitlines() if line.isdecimal()]
        self.judge(what, done.returncode == 0 and len(numbers) == 1 and numbers[0] in wanted, done)

    def by_annotation(self):
        limit = ["--annotation", f"io.discnice.disk={LIMIT}"]
        for name in PROGRAMS:
            self.took(f"{name}, annotation", HELD, "run", "--rm", *limit, "programs", f"/bin/{name}", "/tmp/data")
        self.took("no annotation", FREE, "run", "--rm", "programs", "/bin/glibc", "/tmp/data")
        done = self.podman("run", "--rm", "--annotation", "io.discnice.disk=lots", "programs", "/bin/glibc", "/tmp/data")
        self.judge("wrong annotation", done.returncode != 0 and "annotation io.discnice.disk: invalid value 'lots'" in done.stderr, done)
        self.podman("run", "--detach", "--name", "job", *limit, "programs", "/bin/waits")
        self.took("exec in a container with an annotation", HELD, "exec", "job", "/bin/glibc", "/tmp/data")
        self.podman("rm", "--force", "--time", "0", "job")

    def by_command(self):
        """Podman itself under `discnice run`, with runc."""
        plain = {"before": [self.program, "run", "--disk", LIMIT, "--"], "runtime": shutil.which("runc")}
        for name in PROGRAMS:
            self.took(f"{name}, discnice podman run", HELD, "run", "--rm", "programs", f"/bin/{name}", "/tmp/data", **plain)
        self.took("discnice podman build", HELD, "build", "--no-cache", "--network", "none", "--file", "Again", "context", **plain)

    def by_image(self, image):
        """The program's own image beside a job."""
        self.podman("run", "--detach", "--name", "job", "--init", "programs", *JOB, runtime=shutil.which("runc"))
        first = self.podman("inspect", "--format", "{{.State.Pid}}", "job").stdout.strip()
        with open(f"/proc/{first}/task/{first}/children") as file:
            process = file.read().strip()
        with open(f"/proc/{process}/status") as file:
            inside = next(line.split()[-1] for line in file if line.startswith("NSpid:"))
        beside = self.podman("run", "--detach", "--name", "beside", "--pid", "container:job", "--cap-add", "SYS_PTRACE", f"oci-archive:{image}", "attach", "--disk", LIMIT, inside, runtime=shutil.which("runc"))
        # What it wrote as it was attached is paid for by then.
        time.sleep(5)
        share = rate(process) / RATE
        self.judge(f"image beside a job: {share:.3f} of the limit", 0.9 < share <= 1.05, beside)
        self.podman("rm", "--force", "--time", "0", "beside", "job")

    def remove(self):
        # Ends the process that keeps an ordinary user's namespaces.
        self.podman("system", "migrate")
        # What cleans up behind a container that was removed may still be at it.
        for _ in range(50):
            shutil.rmtree(self.root, ignore_errors=True)
            if not os.path.exists(self.root):
                return
            time.sleep(0.1)
        shutil.rmtree(self.root)


def main():
    isolate()
    program = os.path.abspath(sys.argv[1])
    failed = 0
    for user in [0, USER]:
        engine = Engine(program, user)
        try:
            done = engine.podman("build", "--tag", "programs", "context")
            engine.judge("image", done.returncode == 0, done)
            engine.by_annotation()
            engine.by_command()
            if len(sys.argv) > 2:
                engine.by_image(os.path.abspath(sys.argv[2]))
            failed += engine.failed
        finally:
            engine.remove()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
