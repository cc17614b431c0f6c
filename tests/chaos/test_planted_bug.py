"""The fuzzers find bugs: one that is planted, deep enough that only structure leads to it."""

import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = ROOT / "build-fuzz" / "bin" / "link_batch_fuzz"
SECONDS = 60


class PlantedBugTest(unittest.TestCase):
    def fuzz(self, *options, **environment):
        with tempfile.TemporaryDirectory(prefix="percs-planted-") as folder:
            return subprocess.run(
                [TARGET, f"-max_total_time={SECONDS}", "-seed=1", f"-artifact_prefix={folder}/",
                 *options, folder, ROOT / "tests" / "fuzz" / "corpus" / "link_batch"],
                env=dict(os.environ, **environment), text=True, capture_output=True,
                timeout=SECONDS + 60)

    def test_a_planted_bug_is_found_and_nothing_else(self):
        found = self.fuzz(PERCS_PLANTED_BUG="1")
        self.assertNotEqual(0, found.returncode, found.stderr[-2000:])
        self.assertIn("batch.flits[1].count >= batch.flits[0].count", found.stderr)
        clean = self.fuzz("-runs=2000")
        self.assertEqual(0, clean.returncode, clean.stderr[-2000:])


if __name__ == "__main__":
    unittest.main()
