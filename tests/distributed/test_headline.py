"""tests/bench/headline still works, and `ticks` means over daemons what it means in process.

Method: the script's cheap rows on this machine; only what cannot depend on its speed is asserted.
"""

import json
import os
import pathlib
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADLINE = ROOT / "tests" / "bench" / "headline"
LIMIT_SECONDS = 100


def headline(*arguments, **environment):
    return subprocess.run([str(HEADLINE), *arguments], capture_output=True, text=True,
                          timeout=LIMIT_SECONDS, env=dict(os.environ, **environment), check=False)


class HeadlineTest(unittest.TestCase):
    @unittest.skipIf(os.environ.get("PERCS_SANITIZER"), "builds with sanitizers have no benchmarks")
    def test_rows_have_name_value_and_unit(self):
        wanted = ["share_of_flits_in_runs", "share_of_runs_split_by_credits",
                  "windows_per_second_4x8"]
        done = headline("--only", ",".join(wanted), "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = {row["name"]: row for row in json.loads(done.stdout)}
        self.assertEqual(sorted(rows), sorted(wanted))
        for row in rows.values():
            self.assertTrue(row["unit"])
        self.assertGreater(rows["share_of_flits_in_runs"]["value"], 0.5)
        self.assertGreater(rows["share_of_runs_split_by_credits"]["value"], 0)
        self.assertGreater(rows["windows_per_second_4x8"]["value"], 1)
        self.assertIn("10000 windows, all 32 hubs", rows["windows_per_second_4x8"]["note"])

    def test_an_unknown_row_is_refused(self):
        done = headline("--only", "speed")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no row 'speed'; there are flit_hops_per_core_second_16, ", done.stderr)

    def test_a_missing_program_is_named_with_what_builds_it(self):
        done = headline("--only", "up_and_routed_seconds", PERCS_BIN_DIR="/nonexistent")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr,
                         "headline: /nonexistent/percsd is not there. Build it: "
                         "cmake --preset release && cmake --build build --target percsd\n")


if __name__ == "__main__":
    unittest.main()
