"""Sends datagrams into an interface: datagrams.py ADDRESS AFTER SECONDS [STEP]

After so many seconds, for so many seconds, 1.4 MB/s times STEP (1); prints each quarter of a second
how much it sent since it started to print, in bytes.
"""
import socket
import sys
import time

SIZE, EACH, PRINTED = 1400, 0.01, 0.25

address, after, lasts = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
step = int(sys.argv[4]) if len(sys.argv) > 4 else 1
time.sleep(after)
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
out.connect((address, 9))
begun = printed = time.monotonic()
sent = 0
while (now := time.monotonic()) - begun < lasts:
    for _ in range(10 * step):
        sent += out.send(bytes(SIZE))
    if now - printed >= PRINTED:
        print(f"{now - begun:.3f} {sent}", flush=True)
        printed = now
    time.sleep(EACH)
