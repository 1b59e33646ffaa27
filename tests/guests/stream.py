"""Sends over TCP as fast as it goes: stream.py ADDRESS AFTER SECONDS, or: stream.py listen SENDERS

After so many seconds, for so many seconds; prints each quarter of a second how much it sent since it
started to print, in bytes. Who listens throws away what comes, until so many senders have ended.
"""
import socket
import sys
import threading
import time

PORT, SIZE, PRINTED = 9009, 16384, 0.25


def drain(connection):
    while connection.recv(4 * SIZE):
        pass


def listen(senders):
    here = socket.create_server(("0.0.0.0", PORT))
    for _ in range(senders):
        threading.Thread(target=drain, args=here.accept()[:1]).start()


def send(address, after, lasts):
    time.sleep(after)
    out = socket.create_connection((address, PORT))
    begun = printed = time.monotonic()
    sent = 0
    while (now := time.monotonic()) - begun < lasts:
        out.sendall(bytes(SIZE))
        sent += SIZE
        if now - printed >= PRINTED:
            print(f"{now - begun:.3f} {sent}", flush=True)
            printed = now


if sys.argv[1] == "listen":
    listen(int(sys.argv[2]))
else:
    send(sys.argv[1], float(sys.argv[2]), float(sys.argv[3]))
