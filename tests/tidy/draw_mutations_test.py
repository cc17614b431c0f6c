"""The driver of drawn mutations: what it draws, and that it tells killed from survived.

Method: a program of a few lines and its test, which looks at one of its two functions.
"""

import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "differential"))
import draw_mutations  # noqa: E402
import mutation_trial  # noqa: E402

SOURCE = """\
#include <cstdint>
// a < b in a comment is not mutated
int Smaller(int a, int b) {
  return a < b ? a : b;
}
int unread = 0;
void Note(int by) {
  unread += by;
}
"""
TEST = """\
#include "source.cc"
int main() {
  if (Smaller(1, 2) != 1 || Smaller(2, 1) != 1) return 1;
  Note(1);
  return 0;
}
"""


def lines_of(text, operator):
    return list(draw_mutations.OPERATORS[operator](text))


class DrawTest(unittest.TestCase):
    def test_each_operator_changes_what_it_is_named_after(self):
        self.assertEqual(["if (a <= b) {"], lines_of("if (a < b) {", "comparison"))
        self.assertEqual([], lines_of("std::vector<int> a;", "comparison"))
        self.assertEqual([], lines_of("a->b();", "comparison"))
        self.assertEqual(["x = a || b;"], lines_of("x = a && b;", "logic"))
        self.assertEqual(["x = std::max(a, b);"], lines_of("x = std::min(a, b);", "logic"))
        self.assertEqual(["n = m + 2;", "n = m;"], lines_of("n = m + 1;", "off by one"))
        self.assertEqual([], lines_of("std::uint64_t v64;", "off by one"))
        self.assertEqual(["  ;"], lines_of("  queue_.push_back(x);", "dropped statement"))
        self.assertEqual(["  ;"], lines_of("  state.left = 3;", "dropped statement"))
        self.assertEqual([], lines_of("  return a;", "dropped statement"))
        self.assertEqual([], lines_of("  int a = 3;", "dropped statement"))
        self.assertEqual(["x = b - a;"], lines_of("x = a - b;", "swapped operands"))
        self.assertEqual(["std::uint16_t a;"], lines_of("std::uint64_t a;", "narrowed type"))

    def test_a_seed_draws_the_same_and_another_one_others(self):
        files = draw_mutations.PARTS["codec"].files

        def first(seed):
            drawn = draw_mutations.draw(ROOT, files, seed)
            return [mutation for _, mutation in zip(range(12), drawn)]

        self.assertEqual(first(1), first(1))
        self.assertNotEqual(first(1), first(2))
        self.assertEqual(set(draw_mutations.OPERATORS), {m.operator for m in first(1)})

    def test_every_part_has_sources_to_mutate(self):
        for name, part in draw_mutations.PARTS.items():
            for pattern in part.files.split():
                self.assertTrue(list(ROOT.glob(pattern)), f"{name}: {pattern}")
            sites = draw_mutations.sites_of(ROOT, part.files)
            self.assertGreater(sum(map(len, sites.values())), 20, name)


class CampaignTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="percs-drawn-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "source.cc").write_text(SOURCE)
        (self.folder / "test.cc").write_text(TEST)
        self.trial = mutation_trial.Trial(self.folder, ["g++", "-o", "test", "test.cc"], ["./test"])

    def verdicts(self):
        drawn = draw_mutations.draw(self.folder, "source.cc", seed=1)
        return draw_mutations.campaign(self.trial, drawn, 100, say=lambda text: None)

    def test_what_the_tests_look_at_is_killed_and_what_they_do_not_survives(self):
        self.trial.unchanged()
        verdicts = self.verdicts()
        outcomes = {(v.drawn.line, v.drawn.operator): v.outcome for v in verdicts}
        self.assertEqual("survived", outcomes[(4, "comparison")], "equal ones are not tested")
        self.assertEqual("survived", outcomes[(8, "dropped statement")])
        self.assertEqual(SOURCE, (self.folder / "source.cc").read_text())
        self.assertEqual(0, draw_mutations.score(verdicts))

        (self.folder / "source.cc").write_text(SOURCE.replace("a < b ? a", "a - b < 0 ? a"))
        killed = [v for v in self.verdicts() if v.outcome == "killed"]
        self.assertIn("swapped operands", {v.drawn.operator for v in killed})

    def test_sources_that_fail_unchanged_are_no_measure(self):
        (self.folder / "test.cc").write_text("int main() { return 1; }\n")
        with self.assertRaises(RuntimeError):
            self.trial.unchanged()


if __name__ == "__main__":
    unittest.main()
