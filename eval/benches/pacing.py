#!/usr/bin/python3
"""What others behind a slow uplink wait for beside a sender that `discnice run --net-up` limits.

    sudo eval/benches/pacing.py [--discnice PATH] [--rounds N] [--buffer BYTES]

Three network namespaces: a sender and a caller, a router whose uplink has 20 Mbit/s, a receiver. The caller sends 100 bytes
to the receiver and back, again and again. Treatments, interleaved: the kernel spreads what is sent (as DiscNice sets it), and
not (the sender has set a rate of its own, which DiscNice leaves alone). For each: the caller's round trips in milliseconds,
and what the sender had to send again.
"""
import argparse
import os
import socket
import statistics
import struct
import subprocess
import sys
import threading
import time

PACING = 47  # SO_MAX_PACING_RATE
TCP_INFO, RETRANSMITTED = 11, 100
PORT, ECHO = 7001, 7002
RECEIVER = "10.77.2.1"
NAMES = ["discnice-pacing-" + name for name in ("sender", "router", "receiver")]


def receive():
    listener = socket.create_server(("", PORT))
    echo = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    echo.bind(("", ECHO))

    def take(stream):
        while stream.recv(1 << 18):
            pass

    def answer():
        while True:
            data, caller = echo.recvfrom(2000)
            echo.sendto(data, caller)

    threading.Thread(target=answer, daemon=True).start()
    print("ready", flush=True)
    while True:
        stream, _ = listener.accept()
        threading.Thread(target=take, args=(stream,), daemon=True).start()


def send(seconds, pacing):
    stream = socket.create_connection((RECEIVER, PORT))
    if pacing:
        stream.setsockopt(socket.SOL_SOCKET, PACING, struct.pack("Q", pacing))
    data, moved, begun = b"x" * 65536, 0, time.monotonic()
    while time.monotonic() - begun < seconds:
        moved += stream.send(data)
    info = stream.getsockopt(socket.IPPROTO_TCP, TCP_INFO, 256)
    print(moved / (time.monotonic() - begun), struct.unpack_from("I", info, RETRANSMITTED)[0])


def call(seconds):
    echo = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    echo.settimeout(1)
    echo.connect((RECEIVER, ECHO))
    trips, begun = [], time.monotonic()
    while time.monotonic() - begun < seconds:
        sent = time.monotonic()
        try:
            echo.send(bytes(100))
            echo.recv(2000)
        except TimeoutError:
            pass
        trips.append((time.monotonic() - sent) * 1e3)
        time.sleep(0.005)
    trips.sort()
    print(*(trips[int(len(trips) * part)] for part in (0.5, 0.95, 0.99)))


def within(name, *words, **options):
    return subprocess.Popen(["ip", "netns", "exec", name, *words], text=True, **options)


def lay(buffer):
    sender, router, receiver = NAMES
    shell = f"""set -e
    for n in {' '.join(NAMES)}; do ip netns add $n; ip -n $n link set lo up; done
    ip -n {sender} link add veth1 type veth peer name veth2 netns {router}
    ip -n {receiver} link add veth4 type veth peer name veth3 netns {router}
    ip -n {sender} addr add 10.77.1.1/24 dev veth1; ip -n {router} addr add 10.77.1.2/24 dev veth2
    ip -n {router} addr add 10.77.2.2/24 dev veth3; ip -n {receiver} addr add {RECEIVER}/24 dev veth4
    ip -n {sender} link set veth1 up; ip -n {router} link set veth2 up
    ip -n {router} link set veth3 up; ip -n {receiver} link set veth4 up
    ip -n {sender} route add default via 10.77.1.2; ip -n {receiver} route add default via 10.77.2.2
    ip netns exec {router} sysctl -qw net.ipv4.ip_forward=1
    ip netns exec {router} tc qdisc add dev veth3 root tbf rate 20mbit burst 3200 limit {buffer}"""
    subprocess.run(["sh", "-c", shell], check=True)


def measure(discnice, limit, pacing, seconds):
    words = [sys.executable, os.path.abspath(__file__)]
    held = [discnice, "run", "--net-up", limit, "--", *words, "--send", str(seconds), str(pacing)]
    sender = within(NAMES[0], *held, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    caller = within(NAMES[0], *words, "--call", str(seconds), stdout=subprocess.PIPE)
    numbers = [one.communicate()[0].split() for one in (sender, caller)]
    return [float(number) for number in numbers[1] + numbers[0]]


def main():
    if sys.argv[1:2] == ["--receive"]:
        return receive()
    if sys.argv[1:2] == ["--send"]:
        return send(float(sys.argv[2]), int(sys.argv[3]))
    if sys.argv[1:2] == ["--call"]:
        return call(float(sys.argv[2]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--discnice", default="target/release/discnice")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--buffer", type=int, default=250_000)
    options = parser.parse_args()
    receiver = None
    try:
        lay(options.buffer)
        words = [sys.executable, os.path.abspath(__file__), "--receive"]
        receiver = within(NAMES[2], *words, stdout=subprocess.PIPE)
        receiver.stdout.readline()
        found = {}
        for _ in range(options.rounds):
            for limit in ("1M", "2M"):
                for name, pacing in (("not spread", 1 << 40), ("spread", 0)):
                    numbers = measure(os.path.abspath(options.discnice), limit, pacing, 5)
                    found.setdefault((limit, name), []).append(numbers)
    finally:
        if receiver:
            receiver.kill()
        for name in NAMES:
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL, check=False)
    print("limit  treatment   p50 ms  p95 ms  p99 ms   bytes/s  sent again")
    for (limit, name), rounds in found.items():
        p50, p95, p99, rate, again = (statistics.median(column) for column in zip(*rounds))
        print(f"{limit:5}  {name:10} {p50:7.1f} {p95:7.1f} {p99:7.1f} {rate:9.0f} {again:11.0f}")
    return None


if __name__ == "__main__":
    main()
