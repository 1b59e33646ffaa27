"""The gray-box library of the installed package, with real files and real memory."""

import gc
import os
import tempfile
import unittest

SCENE = tempfile.mkdtemp()
os.environ["XDG_RUNTIME_DIR"] = SCENE

from discnice import graybox  # noqa: E402

MIB = 1 << 20


class Files(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(dir="/var/tmp")
        self.addCleanup(self.folder.cleanup)

    def file(self, name, size):
        path = os.path.join(self.folder.name, name)
        with open(path, "wb") as out:
            out.write(bytes(size))
            out.flush()
            os.fsync(out.fileno())
        return path

    def forget(self, path):
        with open(path, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def test_what_is_cached(self):
        path = self.file("one", 3 * MIB + 5)
        found = graybox.residency(path)
        self.assertIn(found.means, ("cachestat", "mincore"))
        self.assertEqual(found.cached_fraction, 1.0)
        self.assertEqual(sum(region.length for region in found.regions), found.size)
        self.forget(path)
        self.assertLess(graybox.residency(path).cached_fraction, 0.1)
        self.assertEqual(graybox.residency(self.file("none", 0)).cached_fraction, 1.0)

    def test_errors_are_pythons_own(self):
        with self.assertRaises(FileNotFoundError) as raised:
            graybox.residency(os.path.join(self.folder.name, "missing"))
        self.assertTrue(raised.exception.filename.endswith("missing"))
        with self.assertRaises(IsADirectoryError):
            graybox.residency(self.folder.name)
        with self.assertRaises(ValueError):
            graybox.order([], by="name")

    def test_order(self):
        paths = [self.file(str(number), MIB) for number in range(6)]
        for path in paths[:3]:
            self.forget(path)
        ordered = graybox.order([*paths, "/nowhere/at/all"])
        self.assertEqual(set(ordered), set(paths))
        self.assertEqual(set(ordered[:3]), set(paths[3:]), "the cached ones come first")
        self.assertEqual(set(graybox.order(paths, by="layout")), set(paths))

    #= gray-box/4.1.2-list
    def test_plan(self):
        hot, cold = self.file("hot", MIB + 7), self.file("cold", MIB)
        self.forget(cold)
        pieces = graybox.plan([cold, "/nowhere/at/all", hot], unit=MIB // 2, align=16)
        self.assertEqual([piece.path for piece in pieces], [hot, hot, cold, cold, hot])
        self.assertEqual([piece.offset for piece in pieces], [0, MIB // 2] * 2 + [MIB])
        self.assertEqual(pieces[-1].length, 7, "what is left of a record comes last")
        self.assertEqual(sum(piece.length for piece in graybox.plan([hot, cold])), 2 * MIB + 7)
        self.assertEqual(graybox.plan([]), [])

    #= gray-box/4.1.2-own-pieces
    def test_own_pieces(self):
        hot, cold = self.file("hot", MIB), self.file("cold", MIB)
        self.forget(cold)
        given = [(cold, 10, 20), (hot, MIB - 5, 99), ("/nowhere/at/all", 0, 1), (hot, MIB, 1), (hot, 0, 7)]
        found = graybox.order_pieces(given)
        self.assertEqual([piece[:3] for piece in found], [(hot, 0, 7), (hot, MIB - 5, 5), (cold, 10, 20)])
        self.assertEqual([piece.cached_bytes for piece in found], [7, 5, 0])
        self.assertEqual(graybox.order_pieces(found), found)


class Memory(unittest.TestCase):
    #= gray-box/4.3.2-gb-alloc
    def test_memory_that_is_there(self):
        with graybox.gb_alloc(MIB, 8 * MIB, MIB) as memory:
            self.assertEqual(len(memory) % MIB, 0)
            self.assertTrue(MIB <= len(memory) <= 8 * MIB)
            self.assertEqual(bytes(memory[:100]), bytes(100))
            memory[-1] = 7
            self.assertEqual(memory[-1], 7)
        with self.assertRaises(ValueError):
            memory[0]

    def test_a_part_keeps_the_whole(self):
        part = graybox.gb_alloc(MIB, MIB).view[10:20]
        gc.collect()
        part[0] = 9
        self.assertEqual(part[0], 9)

    def test_what_cannot_be(self):
        self.assertIsNone(graybox.gb_alloc(1 << 50, 1 << 51))
        with self.assertRaises(ValueError):
            graybox.gb_alloc(2, 1)


if __name__ == "__main__":
    unittest.main()
