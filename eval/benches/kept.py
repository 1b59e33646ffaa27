"""What programs are loaded from stays in the cache while they are measured on another disk.

Where a machine takes cached pages back early (DAMON), a compiler loaded anew is in the account of who runs it, and a program
under a limit pays for itself, though the disk under test never saw it.
"""
import ctypes
import os

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_size_t
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
PAGE = os.sysconf("SC_PAGESIZE")
MAPPED_TO_READ, MAPPED_SHARED, NO_MAPPING = 1, 1, ctypes.c_size_t(-1).value
# Where programs are loaded from, which are not what is measured.
PROGRAMS = ("/usr/bin", "/usr/lib", "/usr/libexec", "/usr/include", "/usr/local", "/usr/share/locale", "/etc")


class Kept:
    """Files whose cached pages are locked until this process ends."""

    def __init__(self, *others):
        self.others = others
        # By path: where it is mapped, and its pages that are locked.
        self.files = {}

    def keep(self):
        """Locks what is in the cache now; nothing is read from a disk for it."""
        for path in self.others:
            self._keep(path)
        for top in PROGRAMS:
            for folder, _, names in os.walk(top):
                for path in (os.path.join(folder, name) for name in names):
                    if os.path.isfile(path) and not os.path.islink(path):
                        self._keep(path)

    def _keep(self, path):
        pages = -(-os.stat(path).st_size // PAGE)
        at, locked = self.files.get(path) or (map_file(path, pages), set())
        if at == NO_MAPPING:
            return
        cached = (ctypes.c_ubyte * pages)()
        LIBC.mincore(ctypes.c_void_p(at), ctypes.c_size_t(pages * PAGE), cached)
        new = {page for page in range(pages) if cached[page] & 1} - locked
        for page in new:
            LIBC.mlock(ctypes.c_void_p(at + page * PAGE), ctypes.c_size_t(PAGE))
        if locked or new:
            self.files[path] = at, locked | new
        else:
            LIBC.munmap(ctypes.c_void_p(at), ctypes.c_size_t(pages * PAGE))


def map_file(path, pages):
    if not pages:
        return NO_MAPPING
    fd = os.open(path, os.O_RDONLY)
    at = LIBC.mmap(None, pages * PAGE, MAPPED_TO_READ, MAPPED_SHARED, fd, 0)
    os.close(fd)
    return at
