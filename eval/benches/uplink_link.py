"""Four machines in network namespaces, and the slow link between the router and the server of uplink.py."""
import collections
import ctypes
import fcntl
import os
import select
import struct
import subprocess
import time

SPACES = ["job", "other", "router", "server"]
SERVER = "10.91.3.2"
RATE, DELAY, QUEUE = 20e6 / 8, 0.020, 0.300


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
