"""Tables as Parquet files: a reader that knows nothing of us has the same rows.

Method: sample.parquet is what a small table has to be, byte for byte; with --full the reader
hyparquet (npm) says what is in it.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))
from python_package import percs  # noqa: E402

import pandas as pd  # noqa: E402

READER = ROOT / "tests" / "engines" / "parquet_reader"
NAN = float("nan")
# Nine rows: more than one group of eight bits.
COLUMNS = {
    "load": [0.25, NAN, -1.5] * 3,
    "count": [1, -2, 9007199254740993] * 3,
    "saturated": [True, False, True] * 3,
    "mode": ["hw_direct", None, "größer"] * 3,
    "known": [True, None, False] * 3,
    "empty": [None] * 9,
}
TYPES = {"load": "DOUBLE", "count": "INT64", "saturated": "BOOLEAN", "mode": "UTF8",
         "known": "BOOLEAN", "empty": "UTF8"}


class ParquetTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="percs-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def test_a_table_has_the_bytes_that_another_reader_has_read(self):
        percs.to_parquet(pd.DataFrame(COLUMNS), self.folder / "table.parquet")
        self.assertEqual((READER / "sample.parquet").read_bytes(),
                         (self.folder / "table.parquet").read_bytes())

    def test_a_number_of_more_than_63_bits_is_refused(self):
        with self.assertRaises(percs.FieldError) as refused:
            percs.to_parquet(pd.DataFrame({"bytes": [1 << 63]}), self.folder / "table.parquet")
        self.assertEqual("bytes", refused.exception.field)

    @unittest.skipUnless(os.environ.get("PERCS_FULL") == "1", "needs npm's registry: --full")
    def test_another_reader_has_the_same_rows(self):
        copy = self.folder / "reader"
        shutil.copytree(READER, copy, ignore=shutil.ignore_patterns("node_modules"))
        self.run_in(copy, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
        read = json.loads(self.run_in(copy, "node", "read.mjs", READER / "sample.parquet"))
        self.assertEqual(list(map(list, TYPES.items())), read["columns"])
        for number, row in enumerate(read["rows"]):
            expected = {name: values[number] for name, values in COLUMNS.items()}
            expected["count"] = str(expected["count"])
            expected["load"] = None if expected["load"] != expected["load"] else expected["load"]
            self.assertEqual(expected, row)
        self.assertEqual(9, len(read["rows"]))
        # Twenty columns and an index with a name, as sweeps and links have them.
        wide = pd.DataFrame({f"c{n}": range(300) for n in range(20)})
        wide.index.name = "link"
        percs.to_parquet(wide, self.folder / "wide.parquet")
        read = json.loads(self.run_in(copy, "node", "read.mjs", self.folder / "wide.parquet"))
        self.assertEqual(["link"] + [f"c{n}" for n in range(20)], [c[0] for c in read["columns"]])
        self.assertEqual([[str(n)] * 21 for n in range(300)],
                         [list(row.values()) for row in read["rows"]])

    @staticmethod
    def run_in(folder, *command):
        done = subprocess.run(list(map(str, command)), cwd=folder, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert done.returncode == 0, done.stderr
        return done.stdout


if __name__ == "__main__":
    unittest.main()
