"""What the kernel hides, found out: what is cached, what lies where, how much memory is free.

::

    from discnice import graybox

    for path in graybox.order(paths):       # cached files first, the rest as on the disk
        read(path)

    print(graybox.residency("disk.img").cached_fraction)

    with graybox.gb_alloc(64 << 20, 4 << 30) as memory:
        fill(memory)                        # a memoryview that fits without paging
"""

import ctypes
import os
from collections import namedtuple

from . import _discnice

__all__ = [
    "Memory",
    "Piece",
    "Region",
    "Residency",
    "gb_alloc",
    "order",
    "order_pieces",
    "plan",
    "residency",
]

#: A part of a file: first byte, bytes, and how many of them are cached.
Region = namedtuple("Region", "offset length cached_bytes")


class Residency(namedtuple("Residency", "size means regions pages_read")):
    """What of a file is in the page cache.

    ``means`` is how that is known: ``"cachestat"`` and ``"mincore"`` are exact, ``"probe"`` touched a
    byte in every prediction unit and so brought in ``pages_read`` pages, ``"unknown"`` is
    somebody else's file, too small to probe. ``regions`` cover the file in order.
    """

    __slots__ = ()

    @property
    def cached_bytes(self):
        """Cached bytes of the file; ``None`` if unknown."""
        if self.means == "unknown":
            return None
        return sum(region.cached_bytes for region in self.regions)

    @property
    def cached_fraction(self):
        """Cached part of the file, at most 1; an empty file counts as cached. ``None`` if unknown."""
        cached = self.cached_bytes
        if cached is None:
            return None
        return cached / self.size if self.size else 1.0


def residency(path, *, unit=None):
    """Find out which parts of the regular file ``path`` are cached.

    ``unit`` is the number of bytes that one probe speaks for, where probes are needed; by default
    1000 pages. Raises :class:`OSError`.
    """
    size, means, regions, pages = _discnice.residency(os.fsdecode(path), unit)
    return Residency(size, means, [Region(*region) for region in regions], pages)


def order(paths, by="compose"):
    """Return the files of ``paths`` in the order in which reading them costs the least disk.

    ``by`` is ``"cached"``, ``"layout"`` or ``"compose"``, as for the program ``discnice order``. Files that
    cannot be looked at are left out.
    """
    paths = list(paths)
    return [paths[index] for index in _discnice.order([os.fsdecode(p) for p in paths], by)]


#: A part of a file: its path, first byte, bytes, and how many of them are cached.
Piece = namedtuple("Piece", "path offset length cached_bytes")


#= gray-box/4.1.2-list
def plan(paths, *, unit=None, align=1):
    """Return the parts of files in the order in which reading them costs the least disk.

    Parts in the cache come first, then the others as the files lie on the disk; each byte of each
    file is in one :class:`Piece`. A part has about ``unit`` bytes, by default what the disk needs to
    make up for a seek. Parts begin and end at multiples of ``align``, the length of a record;
    what is left of a record at the end of a file comes last. Files that cannot be looked at
    are left out.
    """
    paths = list(paths)
    pieces = _discnice.plan([os.fsdecode(path) for path in paths], unit, align)
    return [Piece(paths[index], *where) for index, *where in pieces]


#= gray-box/4.1.2-own-pieces
def order_pieces(pieces):
    """Return parts of files that you have cut, ``(path, offset, length)``, in best order.

    As :func:`plan`. What lies beyond the end of its file is cut off; parts of which nothing remains, and
    those of files that cannot be looked at, are left out.
    """
    pieces = [(piece[0], piece[1], piece[2]) for piece in pieces]
    paths = list(dict.fromkeys(path for path, _, _ in pieces))
    index = {path: number for number, path in enumerate(paths)}
    wanted = [(index[path], offset, length) for path, offset, length in pieces]
    found = _discnice.order_pieces([os.fsdecode(path) for path in paths], wanted)
    return [Piece(paths[number], *where) for number, *where in found]


class Memory:
    """Memory that was really there when it was allocated; a context manager.

    It is given back by :meth:`release`, or with the last object that uses it.
    """

    def __init__(self, grant):
        array = (ctypes.c_ubyte * grant.length).from_address(grant.address)
        # Every view holds the array, so the memory stays as long as anybody can reach it.
        array.grant = grant
        #: The bytes, a writable :class:`memoryview`.
        self.view = memoryview(array).cast("B")

    def __len__(self):
        return self.view.nbytes

    def release(self):
        """Give it back; :class:`BufferError` if something still uses the view."""
        self.view.release()
        self.view = memoryview(b"")

    def __enter__(self):
        return self.view

    def __exit__(self, *exception):
        self.release()


def gb_alloc(minimum, maximum, multiple=1):
    """Allocate between ``minimum`` and ``maximum`` bytes, as many as fit without paging.

    The number is a multiple of ``multiple``. Returns :class:`Memory`, or ``None`` if less than
    ``minimum`` is there now; then ask again after a pause. Raises :class:`ValueError` for a
    senseless demand.
    """
    grant = _discnice.gb_alloc(minimum, maximum, multiple)
    return None if grant is None else Memory(grant)
