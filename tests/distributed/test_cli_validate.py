"""percsctl validate as a user meets it: tables, JSON, the page, and figures from outside."""

import unittest
from xml.etree import ElementTree

from test_cli import BAD_INPUT, USAGE, CliTest


class ValidateTest(CliTest):
    def test_validation_prints_published_beside_emulated(self):
        report = self.good_json("validate", "cell")
        rows = {row["id"]: row for row in report["rows"]}
        self.assertEqual((160.1, "calibrated", True),
                         tuple(rows["CELL-014"][key] for key in ("published", "kind", "holds")))
        self.assertEqual((16, "restated", None),
                         tuple(rows["CELL-002"][key] for key in ("published", "kind", "holds")))
        self.assertEqual((None, "predicted", None), tuple(
            rows["CELL-withheld-barrier"][key] for key in ("published", "kind", "holds")))
        summary = {one["kind"]: one for one in report["summary"]}
        self.assertEqual(0, summary["restated"]["judged"])
        self.assertEqual(summary["judged"]["rows"],
                         sum(row["holds"] is not None for row in report["rows"]))
        self.assertIn("90th percentile", self.good("validate", "cell", "--only", "CELL-01"))

    def test_figures_from_outside_are_judged_and_a_wrong_table_is_refused(self):
        figures = self.write("figures.csv", "id,conditions,value,unit\n"
                             'CELL-withheld-barrier,,1,ns\n"CELL-014","intra, chip",160,ns\n'
                             "CELL-999,nothing,3,ns\n")
        report = self.good_json("validate", "cell", "--withhold", figures)
        self.assertEqual([("CELL-withheld-barrier", False), ("CELL-014", True)],
                         [(row["id"], row["holds"]) for row in report["rows"]])
        self.assertEqual(1, len(report["unmatched"]))
        self.assertIn("line 4, CELL-999", report["unmatched"][0])
        figures = self.write("wrong.csv", "id,value\nCELL-014,much\n")
        self.bad(BAD_INPUT, f"percsctl validate: {figures}: line 2: value \"much\"; write a "
                 "number, a range such as 5-20, or a bound such as >1", "validate", "cell",
                 "--withhold", figures)

    def test_the_page_of_a_validation_is_well_formed_and_draws_every_judged_row(self):
        page = self.good("validate", "cell", "--format", "html")
        root = ElementTree.fromstring(page.split("\n", 1)[1])
        judged = sum(row["holds"] is not None
                     for row in self.good_json("validate", "cell")["rows"])
        titles = list(root.iter("title"))
        marks = [mark.text for mark in titles if mark.text.startswith("CELL-")]
        self.assertEqual(2 * judged, len(marks))

    def test_a_machine_without_a_mechanism_gives_other_figures(self):
        def emulated(*options):
            return self.good_json("validate", "p7ih", "--only", "fig13.hybrid.64KB.64",
                                  *options)["rows"][0]["emulated"]
        self.assertGreater(emulated(), 1.3 * emulated("--without", "two-transports"))
        self.bad(USAGE, "percsctl validate: --without belongs to p7ih", "validate", "cell",
                 "--without", "two-transports")

    def test_every_fixed_root_of_a_flat_broadcast_is_ahead_of_a_rotating_one(self):
        found = self.good_json("collective", "broadcast", "--nodes", "1", "--tasks", "32", "--smt",
                               "4", "--algorithm", "shm:one-buffer", "--every-root")
        self.assertEqual(32, len(found["fixed_us"]))
        self.assertLess(1.3 * max(found["fixed_us"]), found["rotating_us"])
        self.bad(USAGE, "percsctl collective: barrier has no root", "collective", "barrier",
                 "--every-root")


if __name__ == "__main__":
    unittest.main()
