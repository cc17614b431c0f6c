"""Unmodified MPI programs on an emulated machine, by percsctl mpirun.

Method: tests/engines/mpi/suite.c prints a hash for each part of MPI that it uses. The hashes must
be those of the same program over Open MPI's own tcp, also while a link of the machine is cut, and
runs on the machine must have one digest. Without Debian's Open MPI the tests are skipped.
"""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("PERCS_BIN_DIR", ROOT / "build" / "bin"))
SUITE = ROOT / "tests" / "engines" / "mpi" / "suite.c"
LIMIT_SECONDS = 120
TCP = ["mpirun", "--oversubscribe", "--mca", "pml", "ob1", "--mca", "btl", "self,tcp"]
CUT = """
name: cut
topology: {supernodes: 1, drawers: 4, hubs: 8}
faults:
- {at: 100us, link_down: "sn0-d0-h0/sn0-d0-h1"}
- {at: 400us, link_up: "sn0-d0-h0/sn0-d0-h1"}
"""


@unittest.skipUnless(shutil.which("mpicc.openmpi"), "deploy/install --mpi installs Open MPI")
class MpiTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name)
        cls.suite = str(cls.path / "suite")
        subprocess.run(["mpicc.openmpi", "-O1", "-o", cls.suite, str(SUITE)], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_program(self, *arguments, code=0):
        result = subprocess.run([BIN / "percsctl", "mpirun", *arguments], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, timeout=LIMIT_SECONDS)
        self.assertEqual(code, result.returncode, result.stdout + result.stderr)
        return result

    def report(self, ranks, *scenario, program=()):
        file = self.path / "report.json"
        printed = self.run_program("-n", str(ranks), "--report", str(file), *scenario, "--",
                                   *(program or [self.suite])).stdout
        report = json.loads(file.read_text())
        self.assertEqual(0, report["late_calls"])
        return printed, report

    def over_tcp(self, ranks):
        command = TCP + (["--allow-run-as-root"] if os.geteuid() == 0 else [])
        return subprocess.run([*command, "-n", str(ranks), self.suite], check=True, text=True,
                              stdout=subprocess.PIPE, timeout=LIMIT_SECONDS).stdout

    def test_results_are_those_of_tcp_and_every_run_has_one_digest(self):
        printed, first = self.report(5)
        self.assertEqual(8, len(printed.splitlines()))
        self.assertEqual(self.over_tcp(5), printed)
        self.assertGreater(first["rendezvous"], 0)
        runs = [self.report(5, program=[self.suite, "own"])[1] for _ in range(4)]
        for key in ("virtual_ps", "ranks", "packets", "times", "digest"):
            self.assertTrue(all(run[key] == runs[0][key] for run in runs[1:]), key)

    def test_a_link_that_is_cut_changes_times_and_no_result(self):
        scenario = self.path / "cut.yaml"
        scenario.write_text(CUT)
        printed, intact = self.report(2)
        cut_printed, cut = self.report(2, str(scenario))
        self.assertEqual(printed, cut_printed)
        self.assertNotEqual(intact["digest"], cut["digest"])

    def test_ranks_of_one_hub_and_of_several(self):
        printed, report = self.report(4, "--map-by", "node:2")
        self.assertEqual(self.over_tcp(4), printed)
        self.assertGreater(report["local"], 0)
        self.assertLess(report["local"], report["messages"])

    def test_the_exit_code_is_the_programs(self):
        self.run_program("-n", "1", "--", "/bin/false", code=1)

    def test_bad_uses_name_what_is_wrong(self):
        static = self.path / "static"
        source = self.path / "static.c"
        source.write_text("int main(void) { return 0; }\n")
        subprocess.run(["gcc", "-static", "-o", str(static), str(source)], check=True)
        for arguments, code, words in (
                (["-n", "2", "--", str(static)], 1, "linked statically"),
                (["-n", "2", "--", "/nothing/there"], 3, "no program"),
                (["-n", "40", "--map-by", "node:1", "--", "true"], 3, "40 hubs"),
                (["-n", "2", "--compute", "much", "--", "true"], 3, "cpu:SCALE"),
                (["-n", "2"], 3, "no program")):
            with self.subTest(words=words):
                self.assertIn(words, self.run_program(*arguments, code=code).stderr)


if __name__ == "__main__":
    unittest.main()
