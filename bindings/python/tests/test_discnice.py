"""The installed package, as a job would use it."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

SCENE = tempfile.mkdtemp()
os.environ["XDG_STATE_HOME"] = SCENE
os.environ["XDG_RUNTIME_DIR"] = SCENE

import discnice  # noqa: E402


class Testpoints(unittest.TestCase):
    def test_items_pass_through_unchanged(self):
        items = list(range(1000))
        self.assertEqual(list(discnice.polite(items)), items)
        self.assertEqual(list(discnice.polite(items, amount=float, index=1)), items)

    def test_a_loop_may_delete_what_amount_measures(self):
        paths = [os.path.join(SCENE, f"deleted-{number}") for number in range(3)]
        for path in paths:
            with open(path, "w") as file:
                file.write("x")
        for path in discnice.polite(paths, amount=os.path.getsize, index=3):
            os.remove(path)

    def test_bad_counters_do_not_raise(self):
        for bad in (float("nan"), float("inf"), -5):
            self.assertIn(discnice.testpoint(bad, index=2), ("skipped", "too soon"))

    def test_an_index_keeps_its_number_of_metrics(self):
        time.sleep(0.15)
        self.assertEqual(discnice.testpoint(1, index=7), "skipped")
        time.sleep(0.15)
        self.assertEqual(discnice.testpoint(1, 2, index=7), "skipped")

    def test_wrong_types_do_raise(self):
        with self.assertRaises(TypeError):
            discnice.testpoint("many")
        with self.assertRaises(OverflowError):
            discnice.testpoint(1, index=-1)
        with self.assertRaises(ValueError):
            discnice.set_priority(0)

    def test_a_job_counts_by_name(self):
        with discnice.Job("files", "bytes", index=3) as job:
            job.add(files=1, bytes=100)
            job.add(bytes=50)
            with self.assertRaises(KeyError):
                job.add(speed=1)
        self.assertEqual(job.counters, {"files": 1, "bytes": 150})

    #= ms-manners/4.5-subset
    def test_other_threads_run_while_one_waits(self):
        def work():
            for i in range(20):
                discnice.testpoint(i, index=9)
                time.sleep(0.03)

        thread = threading.Thread(target=work)
        thread.start()
        ticks = 0
        while thread.is_alive():
            ticks += 1
            time.sleep(0.01)
        self.assertGreater(ticks, 20)


class Settings(unittest.TestCase):
    def run_script(self, lines):
        environment = {**os.environ, "XDG_STATE_HOME": SCENE, "XDG_RUNTIME_DIR": SCENE}
        script = "import discnice, time\n" + lines
        subprocess.run([sys.executable, "-c", script], env=environment, check=True)

    #= ms-manners/6.1-parameters
    def test_settings_take_effect(self):
        # Without the setting, 10 s would be needed to be taken for hung.
        self.run_script(
            "discnice.configure(hung=1, probation=0, alpha=0.01, beta=0.1, average_over=500)\n"
            "discnice.testpoint(0); time.sleep(0.2)\n"
            "assert discnice.testpoint(1) == 'went'\n"
            "time.sleep(1.2)\n"
            "assert discnice.testpoint(2) == 'skipped'\n"
        )

    def test_bad_and_late_settings_raise(self):
        self.run_script(
            "for bad in ({'alpha': 0.3}, {'beta': float('nan')}, {'hung': -1}):\n"
            "    try: discnice.configure(**bad)\n"
            "    except ValueError as error: assert 'must be' in str(error), error\n"
            "    else: raise AssertionError(bad)\n"
            "discnice.testpoint(0)\n"
            "try: discnice.configure(hung=2)\n"
            "except RuntimeError: pass\n"
            "else: raise AssertionError\n"
        )


class Names(unittest.TestCase):
    def test_a_script_may_have_a_name_of_any_bytes(self):
        with tempfile.TemporaryDirectory() as scene:
            script = os.path.join(os.fsencode(scene), b"caf\xe9.py")
            with open(script, "w") as out:
                out.write("import discnice\nprint(discnice.notices())\n")
            environment = {**os.environ, "XDG_STATE_HOME": scene, "XDG_RUNTIME_DIR": scene}
            told = subprocess.run(
                [sys.executable, script], env=environment, capture_output=True, text=True
            )
            self.assertEqual((told.returncode, told.stdout), (0, "[]\n"), told.stderr)


class Signals(unittest.TestCase):
    TURN = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import discnice\n"
        "discnice.configure(hung=60)\n"
    )

    def start(self, script):
        environment = {**os.environ, "XDG_STATE_HOME": SCENE, "XDG_RUNTIME_DIR": SCENE}
        process = subprocess.Popen(
            [sys.executable, "-c", self.TURN + script],
            env=environment, stdout=subprocess.PIPE, text=True,
        )
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_ctrl_c_ends_a_wait(self):
        first = self.start("discnice.testpoint(0); print('runs', flush=True); time.sleep(60)\n")
        self.assertEqual(first.stdout.readline(), "runs\n")
        second = self.start(
            "print('waits', flush=True)\n"
            "try: discnice.testpoint(0)\n"
            "except KeyboardInterrupt: print('interrupted', flush=True)\n"
        )
        self.assertEqual(second.stdout.readline(), "waits\n")
        time.sleep(1)
        self.assertIsNone(second.poll(), "it does not wait for the turn of the first")
        second.send_signal(signal.SIGINT)
        try:
            second.wait(10)
        except subprocess.TimeoutExpired:
            self.fail("it still waits")
        self.assertEqual(second.stdout.read(), "interrupted\n")


class Persistence(unittest.TestCase):
    def test_targets_are_saved_for_each_script(self):
        with tempfile.TemporaryDirectory() as scene:
            script = os.path.join(scene, "indexer.py")
            with open(script, "w") as out:
                out.write(
                    "import discnice, time\n"
                    "for i in discnice.polite(range(8)): time.sleep(0.06)\n"
                    "assert discnice.notices() == [], discnice.notices()\n"
                )
            environment = {**os.environ, "XDG_STATE_HOME": scene, "XDG_RUNTIME_DIR": scene}
            subprocess.run([sys.executable, script], env=environment, check=True)
            targets = os.path.join(scene, "discnice", "targets")
            files = os.listdir(targets)
            self.assertEqual(len(files), 1, files)
            with open(os.path.join(targets, files[0])) as saved:
                self.assertIn("indexer.py", saved.read())
            with open(os.path.join(targets, files[0]), "w") as saved:
                saved.write("damaged")
            script_that_asks = "import sys; sys.argv[0] = %r\n" % script
            script_that_asks += "import discnice\nprint(discnice.notices())"
            told = subprocess.run(
                [sys.executable, "-c", script_that_asks],
                env=environment, check=True, capture_output=True, text=True,
            ).stdout
            self.assertIn("set aside", told)


if __name__ == "__main__":
    unittest.main()
