"""The gray toolbox of the installed package."""

import os
import tempfile
import time
import unittest

SCENE = tempfile.mkdtemp()
os.environ["XDG_RUNTIME_DIR"] = SCENE

from discnice import toolbox  # noqa: E402


class Measurements(unittest.TestCase):
    #= gray-box/5-timer
    def test_timer(self):
        start = toolbox.timer()
        time.sleep(0.05)
        self.assertTrue(40e6 < toolbox.timer() - start < 5e9)

    #= gray-box/5-statistics
    def test_statistics(self):
        stats = toolbox.Stats()
        for value in (2, 4, 4, 4, 5, 5, 7, 9):
            stats.push(value)
        self.assertEqual((stats.count, stats.mean), (8, 5.0))
        self.assertEqual((stats.least, stats.greatest), (2.0, 9.0))
        self.assertAlmostEqual(stats.deviation, (32 / 7) ** 0.5)
        self.assertEqual(toolbox.median([3, 1, 2]), 2)
        self.assertIsNone(toolbox.median([]))
        self.assertAlmostEqual(toolbox.correlation([1, 2, 3], [-2, -4, -6]), -1)
        self.assertIsNone(toolbox.correlation([1, 2], [5, 5]))
        self.assertEqual(toolbox.discard_outliers([10, 11, 1000, 9, 10, 11, 9]), [10, 11, 9, 10, 11, 9])

    #= gray-box/5-clusters
    def test_cluster(self):
        self.assertEqual(toolbox.cluster([3, 5000, 4, 5200]), ([3, 4], [5000, 5200]))
        self.assertEqual(toolbox.cluster([7, 7]), ([7, 7], []))
        self.assertGreater(toolbox.split([3, 5000, 4, 5200]).explained_fraction, 0.99)


class Refreshing(unittest.TestCase):
    #= gray-box/5-refresh
    def test_refresh(self):
        with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
            for name in "abc":
                with open(os.path.join(folder, name), "w") as out:
                    out.write(name * 5000)
            before = {entry.name: entry.inode() for entry in os.scandir(folder)}
            self.assertEqual(toolbox.refresh(folder, dry_run=True).files, 3)
            self.assertEqual(before, {entry.name: entry.inode() for entry in os.scandir(folder)})
            done = toolbox.refresh(folder, order=["c"])
            self.assertEqual((done.files, done.left, done.notes), (3, [], []))
            after = {entry.name: entry.inode() for entry in os.scandir(folder)}
            self.assertTrue(all(before[name] != after[name] for name in "abc"))
            with open(os.path.join(folder, "b")) as file:
                self.assertEqual(file.read(), "b" * 5000)

    def test_refused_with_the_reason(self):
        with self.assertRaises(PermissionError) as raised:
            toolbox.refresh("/")
        self.assertEqual(raised.exception.filename, "/")
        with self.assertRaises(FileNotFoundError):
            toolbox.refresh("/nowhere/at/all")
