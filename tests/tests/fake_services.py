"""Plays UPower, NetworkManager, logind and a desktop on a bus, with Python's own library alone. Each property has the value that
stands in a file of its name in the folder, of the type that stands before it. A notification is noted in the file "asked", and
answered at once by the action in the file "answer", if there is one. The desktop takes the seconds in the file "late" to show it.

usage: fake_services.py SOCKET FOLDER
"""
import os
import pathlib
import socket
import struct
import sys
import time

DESKTOP = "org.freedesktop.Notifications"
NAMES = ["org.freedesktop.UPower", "org.freedesktop.NetworkManager", "org.freedesktop.login1", DESKTOP]
QUESTION = 7


def text(value, body=b""):
    body += b"\0" * (-len(body) % 4)
    return body + struct.pack("<I", len(value)) + value.encode() + b"\0"


def message(kind, serial, fields, body):
    head = b""
    for number, signature, value in fields:
        head += b"\0" * (-len(head) % 8) + bytes([number, 1]) + signature + b"\0"
        head += value
    head = struct.pack("<4BIII", ord("l"), kind, 0, 1, len(body), serial, len(head)) + head
    return head + b"\0" * (-len(head) % 8) + body


def call(serial, member, body=b"", signature=b""):
    bus = "org.freedesktop.DBus"
    fields = [(1, b"o", text("/org/freedesktop/DBus")), (2, b"s", text(bus)), (3, b"s", text(member)), (6, b"s", text(bus))]
    if signature:
        fields.append((8, b"g", bytes([len(signature)]) + signature + b"\0"))
    return message(1, serial, fields, body)


def parse(head):
    """The fields of a header, by number."""
    found, at = {}, 0
    while at < len(head):
        at += -at % 8
        if at >= len(head):
            break
        number, kind = head[at], head[at + 2 : at + 3]
        at += 4
        if kind == b"u":
            found[number] = struct.unpack_from("<I", head, at)[0]
            at += 4
        elif kind == b"g":
            length = head[at]
            found[number] = head[at + 1 : at + 1 + length].decode()
            at += length + 2
        else:
            length = struct.unpack_from("<I", head, at)[0]
            found[number] = head[at + 4 : at + 4 + length].decode()
            at += length + 5
    return found


def notified(body):
    """The texts of a notification: who shows it, its picture, title, text, and the actions with their labels."""
    texts, at = [], 0

    def one():
        nonlocal at
        at += -at % 4
        length = struct.unpack_from("<I", body, at)[0]
        at += 4
        texts.append(body[at : at + length].decode())
        at += length + 1

    one()
    at += -at % 4 + 4
    one(), one(), one()
    at += -at % 4
    end = at + 4 + struct.unpack_from("<I", body, at)[0]
    at += 4
    while at < end:
        one()
    return texts


def invoked(serial, action):
    """The signal that this was chosen."""
    fields = [(1, b"o", text("/org/freedesktop/Notifications")), (2, b"s", text(DESKTOP)), (3, b"s", text("ActionInvoked"))]
    fields.append((8, b"g", b"\x02us\0"))
    return message(4, serial, fields, struct.pack("<I", QUESTION) + text(action))


def main(path, folder):
    stream = socket.socket(socket.AF_UNIX)
    stream.connect(path)
    wire = stream.makefile("rwb", buffering=0)
    wire.write(b"\0AUTH EXTERNAL " + str(os.geteuid()).encode().hex().encode() + b"\r\n")
    assert stream.recv(256).startswith(b"OK ")
    wire.write(b"BEGIN\r\n" + call(1, "Hello"))
    for serial, name in enumerate(NAMES, 2):
        wire.write(call(serial, "RequestName", text(name) + b"\0" * (-len(text(name)) % 4) + struct.pack("<I", 0), b"su"))
    exact = stream.makefile("rb")
    serial = 10
    while fixed := exact.read(16):
        _, kind, _, _, body_length, number, length = struct.unpack("<4BIII", fixed)
        head = exact.read(length + -length % 8)
        body = exact.read(body_length)
        fields = parse(head[:length])
        if fields.get(5) == len(NAMES) + 1:
            (folder / "ready").touch()
        if kind == 1 and fields.get(3) == "Notify":
            if (folder / "late").exists():
                time.sleep(float((folder / "late").read_text()))
            with open(folder / "asked", "a") as asked:
                print(notified(body), file=asked)
            answer = [(5, b"u", struct.pack("<I", number)), (6, b"s", text(fields[7])), (8, b"g", b"\x01u\0")]
            wire.write(message(2, serial + 1, answer, struct.pack("<I", QUESTION)))
            serial += 2
            if (folder / "answer").exists():
                wire.write(invoked(serial, (folder / "answer").read_text()))
        if kind != 1 or fields.get(3) != "Get":
            continue
        name = body.split(b"\0")[-2].decode()
        kind, value = (folder / name).read_text().split()
        at = 8 if kind == "t" else 4
        value = struct.pack("<Q" if kind == "t" else "<I", int(value))
        answer = bytes([1, ord(kind), 0]).ljust(at, b"\0") + value
        fields = [(5, b"u", struct.pack("<I", number)), (6, b"s", text(fields[7])), (8, b"g", b"\x01v\0")]
        serial += 1
        wire.write(message(2, serial, fields, answer))


main(sys.argv[1], pathlib.Path(sys.argv[2]))
