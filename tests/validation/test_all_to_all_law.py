"""The all-to-all law of paper 000 section VII-A with two D links per hub (65 supernodes).

d = 1 runs with the unit tests; this is the same test with four million packets.
"""

import os
import pathlib
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("PERCS_BIN_DIR", ROOT / "build" / "bin"))


class AllToAllLawTest(unittest.TestCase):
    def test_two_d_links_per_hub_reach_the_bound_within_two_percent(self):
        command = [str(BIN / "emulator_test"), "--gtest_filter=AllToAllLaw.*"]
        run = subprocess.run(command, env={**os.environ, "PERCS_LAW_D": "2"}, text=True,
                             capture_output=True, timeout=280)
        self.assertEqual(run.returncode, 0, run.stdout[-2000:] + run.stderr[-2000:])
        self.assertIn("[  PASSED  ] 1 test", run.stdout)


if __name__ == "__main__":
    unittest.main()
