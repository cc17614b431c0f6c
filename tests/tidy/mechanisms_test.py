"""docs/mechanisms.md names files and tests; all of them exist.

Method: every word in backquotes of a table is a file of the tree, a test of a .cc file
(Suite.Name), or a method of a Python test (file:method). The table must have a row for every
heading, and a file and a test in every row.
"""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "mechanisms.md"
SECTIONS = ["Topology", "ISR", "Route tables", "Route modes", "Virtual channels",
            "Lanes and failures"]


def tests_in_cc():
    names = set()
    for path in (ROOT / "tests").rglob("*.cc"):
        for suite, name in re.findall(r"\bTEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\s*\)",
                                      path.read_text(errors="replace")):
            names.add(f"{suite}.{name}")
    return names


def rows(text):
    """(section, cells) of every row of every table."""
    section = None
    for line in text.splitlines():
        if line.startswith("## "):
            section = line[3:].strip()
        elif line.startswith("| ") and not line.startswith(("| ---", "| mechanism")):
            yield section, [cell.strip() for cell in line.strip("|").split("|")]


def problems(text, known_tests):
    found = []
    seen = set()
    for section, cells in rows(text):
        seen.add(section)
        if len(cells) != 4:
            found.append(f"{section}: {cells[0]}: {len(cells)} columns instead of 4")
            continue
        what, _, files, tests = cells
        files, tests = re.findall(r"`([^`]+)`", files), re.findall(r"`([^`]+)`", tests)
        if not files or not tests:
            found.append(f"{section}: {what}: names no file or no test")
        found += [f"{what}: there is no file {name}" for name in files
                  if not (ROOT / name).is_file()]
        for name in tests:
            file, colon, method = name.partition(":")
            if not colon:
                if name not in known_tests:
                    found.append(f"{what}: there is no test {name}")
            elif not (ROOT / file).is_file() or f"def {method}(" not in (ROOT / file).read_text():
                found.append(f"{what}: there is no test {name}")
    return found + [f"no table for {name}" for name in SECTIONS if name not in seen]


class MechanismsTest(unittest.TestCase):
    def test_every_file_and_test_that_the_page_names_exists(self):
        self.assertEqual([], problems(PAGE.read_text(), tests_in_cc()))

    def test_what_is_not_there_is_told(self):
        text = PAGE.read_text()
        self.assertEqual(["Never to a lower one, so no cycle and no deadlock: there is no file "
                          "emulator/routing/no_graph.cc"],
                         problems(text.replace("channel_graph.cc", "no_graph.cc"), tests_in_cc()))
        self.assertIn("no table for ISR", problems(text.replace("## ISR", "## IRS"),
                                                   tests_in_cc()))
        self.assertTrue(problems(text, set()))


if __name__ == "__main__":
    unittest.main()
