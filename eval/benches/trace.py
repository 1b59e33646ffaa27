#!/usr/bin/env python3
"""Records what reads do to the disk, as a fixture for the estimator's tests.

On a file of its own, on a cold cache and without the kernel's read-ahead, makes reads and notes for each:
what of the file was in the page cache before (mincore), what was asked for, and what the kernel charged
(ru_inblock). One line a step:

    size BYTES
    cached FIRST-END...              pages in the cache before the next read, if others than after the last
    read OFFSET LENGTH BYTES         bytes charged

crates/estimator/src/tests/traces.rs replays such files. Run as root, for dropping caches, in a folder on a disk:
eval/benches/trace.py FOLDER > crates/estimator/fixtures/ext4.trace
"""
import ctypes
import mmap
import os
import random
import resource
import sys

PAGE = 4096
SIZE = 4 << 20
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]


def cached(start):
    pages = (ctypes.c_ubyte * (SIZE // PAGE))()
    if libc.mincore(start, SIZE, pages):
        raise OSError(ctypes.get_errno(), "mincore")
    return [page & 1 for page in pages]


def ranges(pages):
    found, begin = [], None
    for number, there in enumerate(pages + [0]):
        if there and begin is None:
            begin = number
        if not there and begin is not None:
            found.append(f"{begin}-{number}")
            begin = None
    return " ".join(found)


def charged():
    return resource.getrusage(resource.RUSAGE_THREAD).ru_inblock * 512


def read(fd, start, known, offset, length):
    """Makes one read; returns what is cached after it as far as we know."""
    before = cached(start)
    if before != known:
        print("cached", ranges(before))
    account = charged()
    os.pread(fd, length, offset)
    account = charged() - account
    print("read", offset, length, account)
    for page in range(offset // PAGE, min(-(-(offset + length) // PAGE), SIZE // PAGE)):
        before[page] = 1
    return before


def main():
    random.seed(4)
    path = os.path.join(sys.argv[1], f"trace-{os.getpid()}")
    with open(path, "wb") as file:
        file.write(random.randbytes(SIZE - 1000))
        os.fsync(file.fileno())
    fd = os.open(path, os.O_RDONLY)
    os.unlink(path)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
    start = libc.mmap(None, SIZE, 0, mmap.MAP_SHARED, fd, 0)
    print("size", SIZE - 1000)
    known = [0] * (SIZE // PAGE)
    steps = [(at * 65536, 65536) for at in range(8)]
    steps += [(random.randrange(SIZE), random.choice((1, 100, 4096, 20000, 65536))) for _ in range(120)]
    steps += [(at, 1) for at in range(0, SIZE, 12288)]
    for number, (offset, length) in enumerate(steps):
        if number % 40 == 20:
            # Somebody else reads a part, and the kernel forgets another.
            os.posix_fadvise(fd, (SIZE // 4) // PAGE * PAGE, 256 << 10, os.POSIX_FADV_DONTNEED)
            other = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY)
            os.pread(other, 100_000, random.randrange(SIZE // 2, SIZE))
            os.close(other)
        known = read(fd, start, known, offset, length)


if __name__ == "__main__":
    main()
