"""The search of histories finds bugs: each of those that tests/simulator/plant.py plants.

planted_campaign is control_campaign with all these bugs behind switches. For each there is a
history, printed here, that fails with it and not without, and fails again when it is played again.
Only with --full, which has time to build it.
"""

import os
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from tests.simulator import plant  # noqa: E402

BUILD = pathlib.Path(os.environ.get("PERCS_BIN_DIR", ROOT / "build" / "bin")).parent
CAMPAIGN = BUILD / "bin" / "planted_campaign"
JOBS = os.environ.get("PERCS_JOBS", "2")
HISTORIES = 3000  # in which each bug is found
STEP = 150


@unittest.skipUnless(os.environ.get("PERCS_FULL") == "1", "builds the control plane again: --full")
class PlantedBugTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        subprocess.run(["cmake", "--build", BUILD, "-j", JOBS, "--target", "planted_campaign"],
                       check=True, stdout=subprocess.DEVNULL)

    def campaign(self, bug, *arguments):
        done = subprocess.run([CAMPAIGN, *map(str, arguments)], text=True, capture_output=True,
                              env=dict(os.environ, PERCS_PLANTED=str(bug)), timeout=600)
        return done.returncode, done.stdout

    def find(self, number, bug):
        """The first history that fails with it, as it should, and not without, and why."""
        for first in range(0, HISTORIES, STEP):
            text = self.campaign(number, first, STEP, "--jobs", JOBS)[1]
            for seed, why in re.findall(r"^history (\d+): (.*)", text, re.M):
                if bug.found_by in why and self.campaign(0, seed, 1)[0] == 0:
                    return seed, why
        return None

    def check(self, number, bug):
        found = self.find(number, bug)
        self.assertIsNotNone(found, f"nothing noticed in {HISTORIES} histories: {bug.title}")
        seed, why = found
        print(f"{bug.title}: history {seed}: {why}")
        code, text = self.campaign(number, seed, 1)
        self.assertEqual(1, code, "it does not fail again")
        self.assertIn(why, text)


def test_of(number, bug):
    return lambda self: self.check(number, bug)


for each_number, each in enumerate(plant.BUGS, 1):
    name = re.sub(r"[^a-z0-9]+", "_", each.title.lower())
    setattr(PlantedBugTest, f"test_{each_number:02}_{name}", test_of(each_number, each))


if __name__ == "__main__":
    unittest.main()
