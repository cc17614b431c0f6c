"""docs/fidelity.md says what `percsctl validate` says.

Method: the rows of every machine are measured and compared with their lines in the table of
docs/fidelity.md; without PERCS_FULL only rows that take seconds. `python3 test_fidelity.py --write`
measures all of them, which takes minutes, and writes the tables.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("PERCS_BIN_DIR", ROOT / "build" / "bin"))
DOCUMENT = ROOT / "docs" / "fidelity.md"
LIMIT_SECONDS = 1800
UNEXPLAINED_MOST = 8

# Rows that take seconds, all of which the page has.
QUICK = (("cell", ""), ("smartmap", ""),
         *(("roadrunner", f"RR-0{part}") for part in ("0", "2", "3", "4", "50", "59")))


def validate(machine, only):
    command = [BIN / "percsctl", "validate", machine, "--only", only, "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS,
                          check=False)
    if done.returncode != 0:
        raise RuntimeError(f"percsctl validate {machine} --only {only}: {done.stderr}")
    return json.loads(done.stdout)


def row_line(row):
    published = row["published"] if row["published"] is not None else "-"
    if isinstance(published, float):
        published = f"{published:g}"
    error = "-" if row["error"] is None else f"{100 * row['error']:+.1f} %"
    judged = {None: "-", True: "holds", False: "**misses**"}[row["holds"]]
    return (f"| `{row['id']}` | {row['quantity']} | {published} | {row['emulated']:.4g} | "
            f"{row['unit']} | {error} | {row['kind']} | {judged} |")


def summary_line(one):
    def percent(value, of):
        return f"{100 * value:.1f} %" if of else "-"
    return (f"| {one['machine']} | {one['kind']} | {one['rows']} | {one['judged']} | "
            f"{one['held']} | {percent(one['median'], one['figures'])} | "
            f"{percent(one['percentile_90'], one['figures'])} | "
            f"{percent(one['worst'], one['judged'])} | {one['worst_id'] or '-'} |")


def is_listed(row):
    """Rows without a published figure are those of curves; percsctl prints them."""
    return row["published"] is not None


class FidelityTest(unittest.TestCase):
    def lines(self):
        return {match.group(1): match.group(0) for match in
                re.finditer(r"^\| `([^`]+)` \|.*$", DOCUMENT.read_text(), re.MULTILINE)}

    def test_the_table_has_what_is_emulated(self):
        lines = self.lines()
        for machine, only in QUICK:
            for row in filter(is_listed, validate(machine, only)["rows"]):
                self.assertEqual(row_line(row), lines.get(row["id"]), row["id"])

    @unittest.skipUnless(os.environ.get("PERCS_FULL") == "1", "takes minutes")
    def test_every_row_of_the_table_is_emulated_so(self):
        emulated = {row["id"]: row_line(row) for row in validate("all", "")["rows"]}
        for name, line in self.lines().items():
            self.assertEqual(emulated.get(name), line, name)

    def test_at_most_eight_rows_are_called_unexplained_and_each_is_explained(self):
        text = DOCUMENT.read_text()
        unexplained = [name for name, line in self.lines().items() if "| unexplained |" in line]
        self.assertLessEqual(len(unexplained), UNEXPLAINED_MOST)
        evidence = text.split("## What cannot be known", 1)[1].split("\n## ", 1)[0]
        for name in unexplained:
            self.assertIn(f"**{name}**", evidence)


def write():
    report = validate("all", "")
    text = DOCUMENT.read_text()
    tables = {"rows": [row_line(row) for row in report["rows"] if is_listed(row)],
              "summary": [summary_line(one) for one in report["summary"]]}
    heads = {"rows": ["| row | what | published | emulated | unit | error | kind | judged |",
                      "| --- | --- | --- | --- | --- | --- | --- | --- |"],
             "summary": ["| machine | rows | count | judged | hold | median | 90th percentile | "
                         "worst | worst row |",
                         "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"]}
    for name, body in tables.items():
        text = re.sub(rf"(?s)<!-- {name} -->.*?<!-- end -->",
                      "\n".join([f"<!-- {name} -->", *heads[name], *body, "<!-- end -->"])
                      .replace("\\", r"\\"), text)
    DOCUMENT.write_text(text)


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        write()
    else:
        unittest.main()
