"""Programs as Debian ships them, and ours, on an emulated machine: what they compute is what they
compute over Open MPI's own tcp, and ten runs have one digest and print the same times.

Method: lines with what a program computed must be equal over tcp; those that say how long it took
are virtual with --compute zero, so all of its output is the same in every run. Most of this takes
minutes, and runs with --full only.
"""

import dataclasses
import pathlib
import re
import shutil
import subprocess
import unittest

from mpi_fixture import FULL, PROGRAMS, SCALAPACK, MpiFixture

RUNS = 10
LIMIT_SECONDS = 600
FOUR_BY_EIGHT = "name: four by eight\ntopology: {supernodes: 1, drawers: 4, hubs: 8}\n"
MELT = """units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 10 0 10 0 10
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
fix 1 all nve
thermo 10
run 100
"""
HPCC = pathlib.Path("/usr/share/doc/hpcc/examples/_hpccinf.txt")


@dataclasses.dataclass
class Shipped:
    """A program, and which lines of its output say what it computed."""
    ranks: int
    command: list
    result: str  # pattern: the part of a line that has nothing to do with time
    least: int   # such lines
    file: str = ""  # where they are, if not in standard output
    digest: bool = True  # else it sends memory that it never wrote, which has addresses
    daemons: bool = False  # short enough for a run on daemons


SHIPPED = {
    "suite": Shipped(5, ["{path}/suite"], r"^.* [0-9a-f]{16}$", 8, daemons=True),
    "ring": Shipped(5, ["{path}/ring"], r"^sum, least, seconds.*", 1, daemons=True),
    "mpi4py": Shipped(4, ["/usr/bin/python3", str(PROGRAMS / "pickles.py")], r"^[\[r].*", 7),
    "NetPIPE": Shipped(2, ["sh", "-c", "exec NPopenmpi -n 20 -u 65536 2>&1"],
                       r"^ *\d+: +\d+ bytes +20 times", 60),
    "NetPIPE's check": Shipped(2, ["sh", "-c", "exec NPopenmpi -i -n 3 -u 65536 2>&1"],
                               r"^.* bytes .*Integrity check passed", 28),
    "LAMMPS": Shipped(32, ["lmp", "-in", "in.melt", "-log", "none"], r"^ +\d+ +[\d.]+ +-[\d.]+ .*",
                      11),
    # Not the scaled residual of StarDGEMM, which draws its matrices by the clock.
    "HPCC": Shipped(4, ["hpcc"],
                    r"^(WALL|CPU)( +\d+){6}|^(Found|Node.s. with|Solution).*|"
                    r"^(?!Scaled).*(residual|tests comp).*|^\w+(residual|Errors\w*|maxErr|Success)=.*",
                    20, "hpccoutf.txt", digest=False),
}
QUICK = ("mpi4py",)  # beside those of test_mpi.py; NetPIPE writes a line in pieces, which may mix
# Of linear equations, least squares, inverses, eigenvalues, and of banded and tridiagonal matrices.
TESTERS = ("xdlu", "xsllt", "xdqr", "xzinv", "xdbrd", "xstrd", "xdnep", "xdhrd", "xddblu", "xsdtlu",
           "xdpbllt", "xsptllt")


class ProgramsTest(MpiFixture):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.compile(PROGRAMS / "ring.f90")
        (cls.path / "in.melt").write_text(MELT)
        (cls.path / "four.yaml").write_text(FOUR_BY_EIGHT)
        for file in SCALAPACK.glob("*.dat"):
            shutil.copy(file, cls.path)
        if HPCC.exists():  # small
            text = HPCC.read_text().replace("1000         Ns", "64           Ns")
            (cls.path / "hpccinf.txt").write_text(text.replace("80           NBs", "16 NBs"))

    def command(self, shipped):
        return [word.format(path=self.path) for word in shipped.command]

    def output(self, shipped, printed):
        """Lines of ranks come in any order."""
        file = self.path / shipped.file
        text = printed
        if shipped.file:
            text += file.read_text()
            file.unlink()
        return sorted(text.splitlines())

    def on_machine(self, shipped, *options):
        printed, report = self.report(shipped.ranks, *options, program=self.command(shipped),
                                      cwd=self.path, limit=LIMIT_SECONDS)
        return self.output(shipped, printed), report

    def results(self, shipped, lines):
        found = [match.group(0) for line in lines if (match := re.search(shipped.result, line))]
        self.assertGreaterEqual(len(found), shipped.least, lines)
        return found

    def compare_with_tcp(self, name):
        shipped = SHIPPED[name]
        ours, _ = self.on_machine(shipped)
        tcp = self.output(shipped, self.over_tcp(shipped.ranks, *self.command(shipped),
                                                 cwd=self.path, limit=LIMIT_SECONDS))
        self.assertEqual(self.results(shipped, tcp), self.results(shipped, ours))

    def assert_same_program(self, shipped, one, other):
        if not shipped.digest:
            one, other = {**one, "digest": ""}, {**other, "digest": ""}
        self.assert_same_run(one, other)

    def test_results_of_short_programs_are_those_of_tcp(self):
        for name in QUICK:
            with self.subTest(name):
                self.compare_with_tcp(name)

    @unittest.skipUnless(FULL, "minutes long: --full")
    def test_results_of_all_programs_are_those_of_tcp(self):
        for name in SHIPPED:
            with self.subTest(name):
                self.compare_with_tcp(name)

    @unittest.skipUnless(FULL, "minutes long: --full")
    def test_ten_runs_and_one_on_daemons_have_one_digest_and_print_the_same(self):
        for name, shipped in SHIPPED.items():
            with self.subTest(name):
                printed, first = self.on_machine(shipped, "four.yaml")
                for run in range(1, RUNS):
                    again, report = self.on_machine(shipped, "four.yaml")
                    self.assertEqual(printed, again, run)
                    self.assert_same_program(shipped, first, report)
                if not shipped.daemons:
                    continue
                again, report = self.on_machine(shipped, "four.yaml", "--daemons", "4")
                self.assertEqual(printed, again)
                self.assert_same_program(shipped, first, report)

    @unittest.skipUnless(FULL, "a minute long: --full")
    def test_the_table_of_allreduces_in_the_document_is_what_its_program_prints(self):
        printed = subprocess.run([PROGRAMS / "allreduce_table"], check=True, text=True,
                                 stdout=subprocess.PIPE, timeout=LIMIT_SECONDS).stdout
        document = (PROGRAMS.parents[2] / "docs" / "mpi.md").read_text()
        rows = [line for line in printed.splitlines() if line.startswith("|")]
        self.assertEqual(9, len(rows))
        self.assertIn("\n".join(rows), document)

    @unittest.skipUnless(FULL and SCALAPACK.exists(),
                         "minutes long, and needs scalapack-mpi-test: --full")
    def test_testers_of_scalapack_pass_as_over_tcp(self):
        for tester in TESTERS:
            with self.subTest(tester):
                program = str(SCALAPACK / tester)
                ours = self.run_program("-n", "4", "--", program, cwd=self.path,
                                        limit=LIMIT_SECONDS).stdout
                tcp = self.over_tcp(4, program, cwd=self.path, limit=LIMIT_SECONDS)
                self.assertGreater(tcp.count("PASSED"), 10)
                self.assertEqual((tcp.count("PASSED"), tcp.count("FAILED")),
                                 (ours.count("PASSED"), ours.count("FAILED")))


if __name__ == "__main__":
    unittest.main()
