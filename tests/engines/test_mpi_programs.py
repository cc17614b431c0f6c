"""Programs as Debian ships them, and ours, on an emulated machine: what they compute is what they
compute over Open MPI's own tcp, and ten runs have one digest and print the same times.

Method: lines with what a program computed must be equal over tcp; those that say how long it took
are virtual with --compute zero, so all of its output is the same in every run. Most of this takes
minutes, and runs with --full only.
"""

import subprocess
import unittest

from mpi_fixture import FULL, PROGRAMS, SCALAPACK
from mpi_programs import LIMIT_SECONDS, SHIPPED, ProgramsFixture

RUNS = 10
TCP_LIMIT_SECONDS = 240
QUICK = ("mpi4py",)  # beside those of test_mpi.py; NetPIPE writes a line in pieces, which may mix
# Of linear equations, least squares, inverses, eigenvalues, and of banded and tridiagonal matrices.
TESTERS = ("xdlu", "xsllt", "xdqr", "xzinv", "xdbrd", "xstrd", "xdnep", "xdhrd", "xddblu", "xsdtlu",
           "xdpbllt", "xsptllt")


class ProgramsTest(ProgramsFixture):
    def compare_with_tcp(self, name):
        shipped = SHIPPED[name]
        ours, _ = self.on_machine(shipped)
        tcp = self.output(shipped, self.over_tcp(shipped.ranks, *self.command(shipped),
                                                 cwd=self.path, limit=LIMIT_SECONDS))
        self.assertEqual(self.results(shipped, tcp), self.results(shipped, ours))

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
    def test_ten_runs_have_one_digest_and_print_the_same(self):
        for name, shipped in SHIPPED.items():
            with self.subTest(name):
                printed, first = self.on_machine(shipped, "four.yaml")
                for run in range(1, RUNS):
                    again, report = self.on_machine(shipped, "four.yaml")
                    self.assertEqual(printed, again, run)
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
                arguments = ("-n", "4", "--", program)
                try:
                    tcp = self.over_tcp(4, program, cwd=self.path, limit=TCP_LIMIT_SECONDS)
                except subprocess.TimeoutExpired:
                    # xsllt and xdllt take different ways in different ranks on some processors.
                    ours = self.run_program(*arguments, cwd=self.path, code=5)
                    self.assertIn("the program waits for ever", ours.stderr)
                    continue
                ours = self.run_program(*arguments, cwd=self.path, limit=LIMIT_SECONDS).stdout
                self.assertGreater(tcp.count("PASSED"), 10)
                self.assertEqual((tcp.count("PASSED"), tcp.count("FAILED")),
                                 (ours.count("PASSED"), ours.count("FAILED")))


if __name__ == "__main__":
    unittest.main()
