"""What others feel of a sender: uplink.py serve | send ADDRESS SECONDS | probe ADDRESS AFTER SECONDS | link PID

Who serves throws away what comes over TCP, and sends datagrams back. Who sends prints how many bytes the other end has
got. Who probes sends forty datagrams a second, and prints the median of their round trips in milliseconds.
The link has 20 Mbit/s each way, 20 ms and a queue of 300 ms; it is `wan0` here and in the network namespace of PID.
"""
import collections
import ctypes
import fcntl
import os
import select
import socket
import statistics
import struct
import sys
import threading
import time

PORT, SIZE = 9011, 16384
RATE, DELAY, QUEUE = 20e6 / 8, 0.010, 0.300


def serve():
    here = socket.create_server(("0.0.0.0", PORT))
    echo = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    echo.bind(("0.0.0.0", PORT))

    def drain(connection):
        got = 0
        while data := connection.recv(4 * SIZE):
            got += len(data)
        connection.sendall(struct.pack("Q", got))
        connection.close()

    def accept():
        while True:
            threading.Thread(target=drain, args=here.accept()[:1], daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    while True:
        data, back = echo.recvfrom(2048)
        echo.sendto(data, back)


def send(address, seconds):
    out = socket.create_connection((address, PORT))
    begun = time.monotonic()
    while time.monotonic() - begun < seconds:
        out.sendall(bytes(SIZE))
    out.shutdown(socket.SHUT_WR)
    print(struct.unpack("Q", out.recv(8))[0] / (time.monotonic() - begun))


def probe(address, after, seconds):
    time.sleep(after)
    line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    line.settimeout(0.5)
    trips, begun = [], time.monotonic()
    while (sent := time.monotonic()) - begun < seconds:
        line.sendto(b"x" * 100, (address, PORT))
        try:
            line.recv(2048)
        except TimeoutError:
            pass
        trips.append(time.monotonic() - sent)
        time.sleep(0.025)
    print(statistics.median(trips) * 1e3)


def device():
    made = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(made, 0x400454CA, struct.pack("16sH22x", b"wan0", 0x1001))
    return made


def link(process):
    here = device()
    if ctypes.CDLL(None).setns(os.open(f"/proc/{process}/ns/net", os.O_RDONLY), 0x40000000):
        sys.exit("no such network")
    there = device()
    ways = [[here, there, 0.0, collections.deque()], [there, here, 0.0, collections.deque()]]
    poll = select.epoll()
    poll.register(here, select.EPOLLIN)
    poll.register(there, select.EPOLLIN)
    print("up", flush=True)
    while True:
        heads = [flying[0][0] for *_, flying in ways if flying]
        poll.poll(max(0.0, min(heads) - time.monotonic()) if heads else 1)
        for way in ways:
            carry(way)


def carry(way):
    source, sink, free, flying = way
    for _ in range(64):
        try:
            packet = os.read(source, 65536)
        except OSError:
            break
        begin = max(way[2], time.monotonic())
        if begin - time.monotonic() <= QUEUE:
            way[2] = begin + len(packet) / RATE
            flying.append((way[2] + DELAY, packet))
    while flying and flying[0][0] <= time.monotonic():
        try:
            os.write(sink, flying.popleft()[1])
        except OSError:
            pass


if sys.argv[1] == "serve":
    serve()
elif sys.argv[1] == "link":
    link(int(sys.argv[2]))
elif sys.argv[1] == "send":
    send(sys.argv[2], float(sys.argv[3]))
else:
    probe(sys.argv[2], float(sys.argv[3]), float(sys.argv[4]))
