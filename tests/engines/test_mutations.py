"""The differential tests notice every mutation of tests/differential/mutate.py.

One test per mutation: the engine with that one line changed must fail the campaign of random
networks against the reference router. Only the emulator and differential_test are built, in a
folder beside the other programs.
"""

import os
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "differential"))
import mutate  # noqa: E402

FOLDER = pathlib.Path(os.environ.get("PERCS_BIN_DIR", ROOT / "build" / "bin")).parent / "mutations"


class MutationTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.mutants = mutate.Mutants(FOLDER, int(os.environ.get("PERCS_JOBS", os.cpu_count())))
        cls.addClassCleanup(cls.mutants.close)
        cls.outcomes = {each: cls.mutants.submit(each) for each in mutate.MUTATIONS}

    def check(self, mutation):
        self.assertTrue(mutate.applies(mutation),
                        f"{mutation.file} must hold this line once: {mutation.old.strip()}")
        outcome, why, seconds = self.outcomes[mutation].result()
        self.assertEqual("killed", outcome, mutation.title)
        print(f"caught after {seconds:.0f} s: {why}")


def test_of(mutation):
    return lambda self: self.check(mutation)


for number, each in enumerate(mutate.MUTATIONS, 1):
    name = re.sub(r"[^a-z0-9]+", "_", each.title.lower())
    setattr(MutationTest, f"test_{number:02}_{name}", test_of(each))


if __name__ == "__main__":
    unittest.main()
