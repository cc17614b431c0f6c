"""The test driver itself: a failure, a crash or an endless test must never count as a pass.

Each test gives tests/support/run_tests.py a small program of its own and reads the tally it writes.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUNNER = ROOT / "tests" / "support" / "run_tests.py"

# Speaks enough of GoogleTest's command line to be driven by the runner.
FAKE_GTEST = """\
#!/usr/bin/python3
import json, os, signal, sys
options = dict(a[2:].split("=", 1) for a in sys.argv[1:] if "=" in a)
if "--gtest_list_tests" in sys.argv:
    print("Suite.\\n  One")
    sys.exit(0)
print("[ RUN      ] Suite.One")
mode = os.environ["FAKE_MODE"]
if mode == "crash":
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGSEGV)
failures = [{"failure": "no"}] if mode == "fail" else []
test = {"name": "One", "status": "RUN", "result": "COMPLETED"}
if failures:
    test["failures"] = failures
    print("[  FAILED  ] Suite.One (0 ms)")
report = options["gtest_output"].split(":", 1)[1]
json.dump({"testsuites": [{"name": "Suite", "testsuite": [test]}]}, open(report, "w"))
sys.exit(1 if mode in ("fail", "late") else 0)
"""

# Speaks enough of libFuzzer's: tries what is in its last folder, and dies of an input "bad". When
# it searches, it finds one.
FAKE_FUZZ = """\
#!/usr/bin/python3
import pathlib, sys
options = dict(a[1:].split("=", 1) for a in sys.argv[1:] if a.startswith("-"))
inputs = list(pathlib.Path(sys.argv[-1]).iterdir())
if "bad" in [i.name for i in inputs]:
    sys.exit(77)
if options.get("runs") != "0":
    path = options["artifact_prefix"] + "crash-1"
    pathlib.Path(path).touch()
    print("Test unit written to " + path)
    sys.exit(77)
print(f"stat::number_of_executed_units: {len(inputs)}")
"""

# Speaks enough of what campaigns do.
FAKE_CAMPAIGN = """\
#!/usr/bin/python3
import os, sys
first, count = int(sys.argv[1]), int(sys.argv[2])
name = os.path.basename(sys.argv[0]).removesuffix("_campaign")
thing = "history" if name == "control" else name
if os.environ["FAKE_MODE"] == "find":
    print(f"{thing} {first + 2}: a reason")
    sys.exit(1)
print(f"{thing} {first} to {first + count - 1}: {count} tried, 0 failed")
"""


class RunnerTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_tier(self, *arguments, mode=""):
        """Returns (exit code, passed, failed, skipped, output)."""
        command = [sys.executable, str(RUNNER), "--tier", "trial", "--results", str(self.folder),
                   "--bin", str(self.folder), *arguments]
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                env=dict(os.environ, FAKE_MODE=mode), timeout=60)
        tally = (self.folder / "trial.tally").read_text().split()
        return (result.returncode, *map(int, tally), result.stdout.decode())

    def run_gtest(self, mode):
        program = self.folder / "fake_test"
        program.write_text(FAKE_GTEST)
        program.chmod(0o755)
        return self.run_tier("--program", "fake_test", mode=mode)

    def run_python(self, body):
        (self.folder / "test_trial.py").write_text(
            "import unittest\nclass Trial(unittest.TestCase):\n" + textwrap.indent(body, "    "))
        return self.run_tier("--python", str(self.folder))

    def test_gtest_pass(self):
        self.assertEqual((0, 1, 0, 0), self.run_gtest("pass")[:4])

    def test_gtest_failure(self):
        self.assertEqual((1, 0, 1, 0), self.run_gtest("fail")[:4])

    def test_gtest_crash_names_the_test_it_was_in(self):
        *counts, output = self.run_gtest("crash")
        self.assertEqual([1, 0, 1, 0], counts)
        self.assertIn("FAILED: Suite.One", output)
        self.assertIn("SIGSEGV", output)

    def test_gtest_that_passes_and_then_exits_badly_fails(self):
        self.assertEqual((1, 1, 1, 0), self.run_gtest("late")[:4])

    def test_python_counts_each_test_once(self):
        body = ("def test_good(self): pass\n"
                "def test_bad(self): self.assertEqual(1, 2)\n"
                "@unittest.skip('a reason')\n"
                "def test_skipped(self): pass\n"
                "def test_parts(self):\n"
                "    for i in range(2):\n"
                "        with self.subTest(i=i): self.assertEqual(i, 0)\n")
        *counts, output = self.run_python(body)
        self.assertEqual([1, 1, 2, 1], counts)
        self.assertIn("a reason", output)
        self.assertEqual(["trial: test_trial.Trial.test_bad: AssertionError: 1 != 2\n",
                          "trial: test_trial.Trial.test_parts (i=1): AssertionError: 1 != 0\n"],
                         (self.folder / "trial.failed").read_text().splitlines(True))

    def test_python_that_dies_fails(self):
        dying = "def test(self): import os; os._exit(0)"
        self.assertEqual((1, 0, 1, 0), self.run_python(dying)[:4])

    def write_program(self, path, text):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def run_fuzz(self, *arguments):
        self.write_program(self.folder / "fuzz" / "trial_fuzz", FAKE_FUZZ)
        return self.run_tier("--fuzz", str(self.folder / "fuzz"), "--corpus",
                             str(self.folder / "corpus"), *arguments)

    def keep_input(self, name):
        (self.folder / "corpus" / "trial").mkdir(parents=True, exist_ok=True)
        (self.folder / "corpus" / "trial" / name).touch()

    def test_a_fuzz_target_tries_its_kept_inputs_and_nothing_else(self):
        self.keep_input("good")
        *counts, output = self.run_fuzz()
        self.assertEqual([0, 1, 0, 0], counts, output)
        self.assertIn("1 inputs", output)
        self.keep_input("bad")
        self.assertEqual([1, 0, 1, 0], list(self.run_fuzz()[:4]))

    def test_a_fuzz_target_without_kept_inputs_fails(self):
        *counts, output = self.run_fuzz()
        self.assertEqual([1, 0, 1, 0], counts)
        self.assertIn("corpus/trial holds no input to try", output)

    def test_what_a_search_finds_is_told_with_how_to_keep_it(self):
        self.keep_input("good")
        *counts, output = self.run_fuzz("--search", "1")
        self.assertEqual([1, 0, 1, 0], counts)
        self.assertRegex(output, "to keep it: cp .*trial_fuzz-crash-1 .*corpus/trial/")

    def test_what_a_campaign_finds_is_told_one_by_one(self):
        for name, thing, things, kept in (
                ("network", "network", "networks", "kFoundNetworks"),
                ("scenario", "scenario", "scenarios", "tests/generate/found"),
                ("control", "history", "histories", "write a unit test")):
            with self.subTest(thing):
                self.write_program(self.folder / f"{name}_campaign", FAKE_CAMPAIGN)
                search = (f"--{things}", "10", "--search-seed", "7")
                *counts, output = self.run_tier(*search)
                self.assertEqual([0, 1, 0, 0], counts, output)
                self.assertIn(f"{things} 7000000 to 7000009", output)
                *counts, output = self.run_tier(*search, mode="find")
                self.assertEqual([1, 0, 1, 0], counts)
                self.assertIn(f"FAILED: {thing} 7000002", output)
                self.assertIn("--shrink 7000002", output)
                self.assertIn(kept, output)

    def test_nothing_to_run_is_said(self):
        *counts, output = self.run_tier("--program", "no_such_test")
        self.assertEqual([0, 0, 0, 0], counts)
        self.assertIn("holds no tests", output)


if __name__ == "__main__":
    unittest.main()
