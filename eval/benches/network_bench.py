"""What the parts of network.py share: a folder with a web server's files, and programs started with and without DiscNice."""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

NOBODY = 65534
MB = 1_000_000

NGINX = """daemon off; worker_processes 1; pid {d}/pid; error_log {d}/errors;
events {{ worker_connections 1024; }}
http {{ access_log off; sendfile on; keepalive_requests 100000000;
 client_body_temp_path {d}/1; proxy_temp_path {d}/2; fastcgi_temp_path {d}/3; uwsgi_temp_path {d}/4;
 scgi_temp_path {d}/5; server {{ listen 127.0.0.1:{port}; root {root}; autoindex on; }} }}
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
        """A Python that the user may run: this one may lie in a home that is closed to it."""
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
