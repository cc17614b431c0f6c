"""The judgement of deploy/quickstart: what it accepts and what it refuses.

Method: results of real runs in process stand in for those over daemons; then one of them is spoilt.
The quickstart itself, with its daemons, is what test_cli.py and a user run.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from fabric import BIN, PATIENCE_SECONDS, ROOT, SLOWER  # noqa: E402

SCENARIOS = ROOT / "deploy" / "scenarios"
SOURCES = {
    "alltoall-process": "link-failure.yaml", "alltoall-daemons": "link-failure.yaml",
    "lammps-process": "trace-replay.yaml", "lammps-2steps-process": "trace-replay.yaml",
    "lammps-2steps-daemons": "trace-replay.yaml",
}


class QuickstartTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.results = {}
        for file in sorted(set(SOURCES.values())):
            done = subprocess.run([BIN / "percsctl", "run", SCENARIOS / file, "--format", "json"],
                                  capture_output=True, text=True, check=True,
                                  timeout=100 * SLOWER)
            cls.results[file] = done.stdout

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="percs-quickstart-"))
        self.addCleanup(shutil.rmtree, self.folder)
        for name, file in SOURCES.items():
            (self.folder / f"{name}.json").write_text(self.results[file])

    def spoil(self, name, change):
        path = self.folder / f"{name}.json"
        result = json.loads(path.read_text())
        change(result)
        path.write_text(json.dumps(result))

    def report(self):
        script = ROOT / "deploy" / "quickstart_report.py"
        return subprocess.run(
            [sys.executable, "-B", script, self.folder, SCENARIOS / "link-failure.yaml"],
            capture_output=True, text=True, timeout=PATIENCE_SECONDS)

    def test_equal_results_and_a_survived_failure_are_good(self):
        done = self.report()
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        self.assertIn("All as it should be.", done.stdout)
        self.assertIn("sn0-d0-h0:LR0 down", done.stdout)

    def test_another_digest_is_refused(self):
        self.spoil("lammps-2steps-daemons", lambda r: r.update(digest="0" * 32))
        done = self.report()
        self.assertEqual(1, done.returncode)
        self.assertIn("NOT OK: lammps-lj-32-2steps: the same digest", done.stdout)

    def test_a_reroute_that_nobody_used_in_time_is_refused(self):
        for late in (None, 120_000.0):
            self.spoil("alltoall-daemons", lambda r: r["reroutes"][0].update(first_packet_ns=late))
            done = self.report()
            self.assertEqual(1, done.returncode)
            self.assertIn("NOT OK: the first packet took the new path", done.stdout)

    def test_a_lost_message_is_refused(self):
        self.spoil("alltoall-daemons", lambda r: r["messages"].update(delivered=1))
        self.assertIn("NOT OK: all 992 messages arrived", self.report().stdout)

    def test_an_unknown_argument_is_a_usage_error(self):
        done = subprocess.run([ROOT / "deploy" / "quickstart", "--what"], capture_output=True,
                              text=True, timeout=PATIENCE_SECONDS)
        self.assertEqual(2, done.returncode)
        self.assertIn("unknown argument '--what'", done.stderr)


if __name__ == "__main__":
    unittest.main()
