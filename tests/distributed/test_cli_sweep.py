"""percsctl sweep: grids, tables, and what is left when it is killed."""

import csv
import json
import os
import shutil
import subprocess
import unittest

from test_cli import BAD_INPUT, BIN, FAILED, INTERRUPTED, OK, CliTest

FULL = os.environ.get("PERCS_FULL") == "1"
LOADS = "0.02..0.20:0.02" if FULL else "0.05..0.20:0.05"
POINTS = 60 if FULL else 24
PATTERN = """\
name: sweep
topology: {supernodes: 3, drawers: 1, hubs: 2}
workload:
  pattern: {pattern: uniform, message_bytes: 2KiB, load: 0.1, warm_up: 20us, measure: 100us}
stop_at: 120us
"""
GRID = ("sweep", "sweep.yaml", "--over", f"workload.pattern.load={LOADS}", "--over",
        "routing.mode=hw_direct,sw_indirect,hw_indirect", "--repeat", 2)


class SweepTest(CliTest):
    def setUp(self):
        super().setUp()
        self.write("sweep.yaml", PATTERN)

    def table(self, folder, name="table.csv"):
        return (self.folder / folder / name).read_bytes()

    def rows(self, folder):
        return [json.loads(line) for line in self.table(folder, "table.jsonl").splitlines()]

    def test_a_killed_sweep_continues_and_gives_the_table_of_one_that_was_not(self):
        self.good(*GRID, "-o", "whole")
        points = self.folder / "killed" / "points"
        for kill in range(3):
            process = subprocess.Popen([BIN / "percsctl", *map(str, GRID), "-o", "killed"],
                                       env=self.env, cwd=self.folder, stderr=subprocess.DEVNULL)
            least = POINTS * (kill + 1) // 4
            self.wait_for(f"{least} points", lambda: points.is_dir() and
                          len(list(points.glob("*.json"))) >= least)
            process.kill()
            process.wait()
            # Half a file, as a kill between two writes leaves it.
            (points / f"{kill}.json.next").write_text('{"digest": "')
            if kill == 0:
                first = {file: file.stat().st_mtime_ns for file in points.glob("*.json")}
        done = self.ctl(*GRID, "-o", "killed", "--jobs", 2, "--format", "json")
        self.assertEqual(OK, done.returncode, done.stderr)
        computed = json.loads(done.stdout)["computed"]
        self.assertLessEqual(computed, POINTS - POINTS * 3 // 4)
        self.assertEqual(first, {file: file.stat().st_mtime_ns for file in first},
                         "nothing is computed twice")
        for name in ("table.csv", "table.jsonl"):
            self.assertEqual(self.table("whole", name), self.table("killed", name))
        self.assertEqual(POINTS, len(self.rows("whole")))
        self.assertIn(f"{POINTS} points, 0 of them computed now",
                      self.good(*GRID, "-o", "killed"))

    def test_a_table_has_units_digests_and_nothing_where_there_is_no_sample(self):
        self.good("sweep", "sweep.yaml", "--over", "workload.pattern.load=0.05,0.9", "--repeat", 2,
                  "-o", "out", "--jobs", 2)
        low, again, high, _ = self.rows("out")
        self.assertEqual([(0.05, 0, False), (0.05, 1, False), (0.9, 0, True)],
                         [(row["workload.pattern.load"], row["repeat"], row["saturated"])
                          for row in (low, again, high)])
        self.assertEqual(low["seed"] + 1, again["seed"])
        self.assertNotEqual(low["digest"], again["digest"])
        report = self.good_json("run", "sweep.yaml", "--set", "workload.pattern.load=0.05")
        self.assertEqual((report["digest"], report["latency_ns"]["packet"]["mean"]),
                         (low["digest"], low["packet_latency_mean_ns"]))
        self.assertEqual((None, None, None), (high["packet_latency_mean_ns"],
                                              low["LR_utilisation_mean"],
                                              low["collective_mean_ns"]))
        self.assertGreater(high["accepted_GB_per_s_per_hub"], 0)
        with open(self.folder / "out" / "table.csv", newline="") as file:
            lines = list(csv.DictReader(file))
        self.assertEqual(list(low), list(lines[0]))
        for row, line in zip(self.rows("out"), lines):
            for name, value in row.items():
                self.assertEqual("" if value is None else value if isinstance(value, str)
                                 else json.dumps(value), line[name])

    def test_more_points_are_added_and_a_changed_scenario_is_another(self):
        sweep = ("sweep", "sweep.yaml", "-o", "out", "--format", "json", "--over")
        done = [json.loads(self.good(*sweep, f"workload.pattern.load={loads}"))["computed"]
                for loads in ("0.1,0.2", "0.05,0.1,0.2", "0.1,0.1")]
        self.assertEqual([2, 1, 0], done)
        self.write("sweep.yaml", PATTERN.replace("120us", "110us"))
        self.assertEqual(2, json.loads(self.good(*sweep, "workload.pattern.load=0.1,0.2"))
                         ["computed"])

    def test_what_is_wrong_is_said_before_anything_runs(self):
        self.bad(BAD_INPUT, "percsctl sweep: --over workload.pattern.load=1..0:1: the range "
                 '"1..0:1" has to go up, by a step above 0', "sweep", "sweep.yaml", "-o", "out",
                 "--over", "workload.pattern.load=1..0:1")
        self.bad(BAD_INPUT, 'percsctl sweep: --over workload.pattern.lod=1: no field "lod" in '
                 '"pattern"; did you mean "load"?', "sweep", "sweep.yaml", "-o", "out",
                 "--over", "workload.pattern.lod=1,2")
        self.assertFalse((self.folder / "out").exists())

    def test_a_run_that_fails_is_a_row(self):
        self.write("stuck.yaml", """\
topology: {supernodes: 4, drawers: 1, hubs: 4}
workload:
  all_to_all: {bytes: 64KiB, reliable: false, payload: lengths}
""")
        sweep = ("sweep", "stuck.yaml", "-o", "out", "--over",
                 "parameters.vc_policy=single,by_hop")
        choices = self.names("run", "--set", "parameters.vc_policy=")
        other = next(c for c in choices if not c.endswith("=single")).split("=")[1]
        done = self.ctl(*(word.replace("by_hop", other) for word in sweep))
        self.assertEqual(FAILED, done.returncode)
        self.assertIn("1 of 2 points failed (column `error`), the first: deadlock at", done.stderr)
        stuck, good = self.rows("out")
        self.assertIn("wait-for cycle", stuck["error"])
        self.assertEqual((None, None), (stuck["digest"], good["error"]))

    def names(self, *words):
        return [line.split("\t")[0] for line in self.good("__complete", *words).splitlines()]

    @unittest.skipUnless(shutil.which("gnuplot"), "deploy/install installs gnuplot-nox")
    def test_curves_are_drawn(self):
        self.good("sweep", "sweep.yaml", "--over", "workload.pattern.load=0.05,0.1,0.5", "--over",
                  "routing.mode=hw_direct,hw_indirect", "-o", "out", "--plot")
        plot = self.table("out", "plot.svg").decode()
        self.assertTrue(plot.startswith("<?xml"))
        for text in ("packet latency, mean", "accepted load", "hw_indirect"):
            self.assertTrue(text in plot, text)

    def test_an_interrupted_sweep_says_how_to_continue(self):
        self.write("sweep.yaml", PATTERN.replace("120us", "1s").replace("100us", "900ms"))
        process = subprocess.Popen([BIN / "percsctl", *map(str, GRID), "-o", "out"], env=self.env,
                                   cwd=self.folder, stderr=subprocess.PIPE, text=True)
        self.wait_for("its folder", (self.folder / "out" / "lock").exists)
        busy = self.ctl(*GRID, "-o", "out")
        self.assertEqual((FAILED, "percsctl sweep: out: another sweep is writing there\n"),
                         (busy.returncode, busy.stderr))
        # From the first line on it heeds signals, and until then it runs nothing.
        self.assertTrue(any("to compute" in line for line in process.stderr), "it ended before")
        process.terminate()
        _, error = process.communicate()
        self.assertEqual(INTERRUPTED, process.returncode)
        self.assertIn(f"interrupted with 0 of {POINTS} points done; the same command continues",
                      error)


if __name__ == "__main__":
    unittest.main()
