"""What others do behind the uplink of uplink.py: a server, and a machine that loads pages from it and has a call."""
import http.server
import socket
import struct
import threading
import time

from uplink_link import SERVER

OBJECTS, OBJECT = 50, 10_000
PAGES, ECHO = 9002, 9003


def serve():
    """What the server does, in its namespace."""

    class Page(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            size = int(self.path.strip("/") or OBJECT)
            self.send_response(200)
            self.send_header("Content-Length", str(size))
            self.end_headers()
            left = size
            while left > 0:
                self.wfile.write(bytes(min(left, 1 << 16)))
                left -= 1 << 16

        def do_PUT(self):
            left = int(self.headers["Content-Length"])
            while left > 0:
                left -= len(self.rfile.read(min(left, 1 << 16)))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *words):
            pass

    class Server(http.server.ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 64

        def handle_error(self, *words):
            pass

    def echo():
        here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        here.bind(("", ECHO))
        while True:
            packet, back = here.recvfrom(2048)
            here.sendto(packet, back)

    threading.Thread(target=echo, daemon=True).start()
    Server(("", PAGES), Page).serve_forever()


def load_page():
    """Seconds that a page takes over six connections."""
    todo, lock = list(range(OBJECTS)), threading.Lock()

    def fetch():
        conn = socket.create_connection((SERVER, PAGES))
        conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stream = conn.makefile("rb")
        while True:
            with lock:
                if not todo:
                    return
                todo.pop()
            conn.sendall(f"GET /{OBJECT} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            while stream.readline() not in (b"\r\n", b""):
                pass
            stream.read(OBJECT)

    begun = time.monotonic()
    threads = [threading.Thread(target=fetch) for _ in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    return time.monotonic() - begun


def call(seconds, out):
    """Round trips of a call's packets; lost ones count as a second."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.connect((SERVER, ECHO))
    sock.settimeout(0.001)
    begun, sent, back = time.monotonic(), 0, {}
    while (now := time.monotonic()) - begun < seconds + 1:
        if now - begun < seconds and now - begun >= sent / 50:
            sock.send(struct.pack("Id", sent, now) + bytes(148))
            sent += 1
        try:
            number, at = struct.unpack("Id", sock.recv(2048)[:16])
            back[number] = time.monotonic() - at
        except (TimeoutError, ConnectionRefusedError):
            pass
    out.extend(back.get(number, 1.0) for number in range(sent))


def foreground(seconds):
    """Prints page times and round trips of a call; in the other machine's namespace."""
    trips, pages = [], []
    caller = threading.Thread(target=call, args=(seconds, trips))
    caller.start()
    begun = time.monotonic()
    while time.monotonic() - begun < seconds - 1:
        pages.append(load_page())
        time.sleep(1)
    caller.join()
    print(" ".join(f"{page:.4f}" for page in pages))
    print(" ".join(f"{trip:.4f}" for trip in trips))
