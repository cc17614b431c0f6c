"""Programs on an emulated machine by percsctl mpirun, and over Open MPI's own tcp."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("PERCS_BIN_DIR", ROOT / "build" / "bin"))
PROGRAMS = ROOT / "tests" / "engines" / "mpi"
SCALAPACK = pathlib.Path("/usr/lib/x86_64-linux-gnu/scalapack/openmpi-tests")
LIMIT_SECONDS = 120
ROOT_USER = ["--allow-run-as-root"] if os.geteuid() == 0 else []
# Ranks that wait leave the core to others: on two cores HPCC takes half a minute instead of many.
TCP = ["mpirun", "--oversubscribe", "--mca", "pml", "ob1", "--mca", "btl", "self,tcp", "--mca",
       "mpi_yield_when_idle", "1"]
FULL = os.environ.get("PERCS_FULL") == "1"


@unittest.skipUnless(shutil.which("mpicc.openmpi"), "deploy/install --mpi installs Open MPI")
class MpiFixture(unittest.TestCase):
    # Sources of which setUpClass makes programs.
    sources = ("suite.c",)
    # What is the same for every run of a program on one machine.
    same = ("digest", "times", "virtual_ps", "messages", "packets", "ranks")

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name)
        for name in cls.sources:
            cls.compile(PROGRAMS / name)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def program(cls, name):
        return str(cls.path / name)

    @classmethod
    def compile(cls, source):
        """The program, which has the name of its source."""
        compiler = "mpif90.openmpi" if source.suffix == ".f90" else "mpicc.openmpi"
        program = cls.program(source.stem)
        subprocess.run([compiler, "-O1", "-o", program, str(source)], check=True)
        return program

    def run_program(self, *arguments, code=0, within=(), cwd=None, limit=LIMIT_SECONDS):
        result = subprocess.run([*within, BIN / "percsctl", "mpirun", *arguments], cwd=cwd,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                timeout=limit, env={**os.environ, "XDG_STATE_HOME": str(self.path)})
        self.assertEqual(code, result.returncode, result.stdout + result.stderr)
        return result

    def report(self, ranks, *scenario, program=(), **options):
        """What the program printed, and the report."""
        file = self.path / "report.json"
        printed = self.run_program("-n", str(ranks), "--report", str(file), *scenario, "--",
                                   *(program or [self.program("suite")]), **options).stdout
        report = json.loads(file.read_text())
        self.assertEqual([], list(self.path.glob("percs/mpirun-*")))  # of a fabric of its own
        self.assertEqual(0, report["late_calls"])
        return printed, report

    def over_tcp(self, ranks, *program, cwd=None, limit=LIMIT_SECONDS):
        command = [*TCP, *ROOT_USER, "-n", str(ranks), *(program or [self.program("suite")])]
        # A folder of its own: of two that make and remove the common one, one may give up.
        return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, cwd=cwd,
                              stderr=subprocess.DEVNULL, timeout=limit,
                              env={**os.environ, "TMPDIR": str(self.path)}).stdout

    def assert_same_run(self, one, other):
        for key in self.same:
            self.assertEqual(one[key], other[key], key)
