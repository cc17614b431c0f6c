"""Lines that are changed on purpose, by planted bugs and by mutations, stand in the sources."""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "tests" / "differential"))
import mutate  # noqa: E402
from tests.simulator import plant  # noqa: E402


class PlantedLinesTest(unittest.TestCase):
    def test_planted_bugs(self):
        for number, bug in enumerate(plant.BUGS, 1):
            for change in bug.changes:
                with self.subTest(bug.title, line=change.line):
                    plant.planted(number, change, (ROOT / change.file).read_text())

    def test_mutations(self):
        for mutation in mutate.MUTATIONS:
            with self.subTest(mutation.title):
                self.assertTrue(mutate.applies(mutation), mutation.file)


if __name__ == "__main__":
    unittest.main()
