"""Programs as Debian ships them, and ours, over four daemons of eight hubs: the digest, the virtual
times and the output of a run in one process. They take minutes, and run with --full only.
"""

import unittest

from mpi_fixture import FULL
from mpi_programs import SHIPPED, ProgramsFixture


class ProgramsOnDaemonsTest(ProgramsFixture):
    @unittest.skipUnless(FULL, "minutes long: --full")
    def test_a_run_on_daemons_is_one_in_a_process(self):
        for name, shipped in SHIPPED.items():
            with self.subTest(name):
                printed, alone = self.on_machine(shipped, "four.yaml")
                again, report = self.on_machine(shipped, "four.yaml", "--daemons", "4")
                self.assertEqual(printed, again)
                self.assert_same_program(shipped, alone, report)


if __name__ == "__main__":
    unittest.main()
