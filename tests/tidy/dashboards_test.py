"""The committed dashboards as files: whole, consistent, and made from the program beside them.

What their queries say is compared with a live fabric by tests/engines/test_prometheus.py. Here,
without Prometheus and without node: identities, units, legends, metrics that exist, and checksums
that tell a dashboard edited by hand, or a program edited and not run. Under --full it is run again.
"""

import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "engines"), str(ROOT / "tests" / "tidy")]
import dashboards  # noqa: E402
import npm_program  # noqa: E402

PROGRAM = ROOT / "deploy" / "grafana"
# Of Grafana, that the dashboards use.
UNITS = {"none", "bytes", "Bps", "cps", "s", "percentunit"}


def metric_list():
    text = (ROOT / "daemon" / "metrics" / "metric_list.h").read_text()
    counters = (ROOT / "emulator" / "metrics" / "node_stats.h").read_text()
    return (set(re.findall(r'\{\s*"(\w+)"\s*,', text))
            | set(re.findall(r'"(percs_\w+_total)"', counters)))


def recording_rules():
    text = (ROOT / "deploy" / "prometheus" / "rules.yml").read_text()
    return set(re.findall(r"record: (\S+)", text))


def repeated(values):
    values = list(values)
    return sorted({value for value in values if values.count(value) > 1})


class DashboardsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.boards = dashboards.load()

    def test_there_are_five_with_identities_of_their_own(self):
        self.assertEqual(5, len(self.boards))
        for key in ("uid", "title"):
            self.assertEqual([], repeated(board[key] for board in self.boards.values()))
        for name, board in self.boards.items():
            self.assertEqual(name, f"{board['uid']}.json")
            for key in ("id", "title"):
                self.assertEqual([], repeated(p[key] for p in board["panels"]), name)

    def test_panels_do_not_overlap(self):
        for name, board in self.boards.items():
            taken = {}
            for panel in board["panels"]:
                at = panel["gridPos"]
                self.assertLessEqual(at["x"] + at["w"], 24, f"{name}: {panel['title']}")
                for x in range(at["x"], at["x"] + at["w"]):
                    for y in range(at["y"], at["y"] + at["h"]):
                        self.assertNotIn((x, y), taken, f"{name}: {panel['title']}")
                        taken[x, y] = panel["title"]

    def test_every_panel_has_a_unit_and_says_what_it_shows(self):
        for name, board in self.boards.items():
            for panel in dashboards.panels(board):
                where = f"{name}: {panel['title']}"
                self.assertIn(panel["fieldConfig"]["defaults"]["unit"], UNITS, where)
                self.assertTrue(panel["description"].endswith("."), where)
                self.assertEqual("$datasource", panel["datasource"]["uid"], where)
                self.assertEqual([], repeated(t["refId"] for t in panel["targets"]), where)

    def test_every_query_has_a_legend_and_speaks_of_metrics_that_exist(self):
        known = metric_list() | recording_rules() | {"ALERTS"}
        self.assertIn("percs_packets_created_total", known)
        used = set()
        for board in self.boards.values():
            for query in dashboards.queries(board):
                self.assertTrue(query.legend.strip(), query.where)
                found = {re.sub(r"_(?:bucket|sum|count)$", "", name) if name not in known else name
                         for name in dashboards.names(query.expr)}
                self.assertTrue(found, query.where)
                self.assertLessEqual(found, known, query.where)
                variables = {"__rate_interval", *(v["name"] for v in board["templating"]["list"])}
                asked = set(re.findall(r"\$(\w+)", query.expr))
                self.assertLessEqual(asked, variables, query.where)
                used |= found
        for_rules = {"percs:virtual_seconds:rate15s", "hub_class:percs_link_up:most"}
        self.assertEqual(set(), recording_rules() - used - for_rules,
                         "no dashboard shows these rules")

    def test_alerts_speak_of_metrics_that_exist_and_are_documented(self):
        text = (ROOT / "deploy" / "prometheus" / "alerts.yml").read_text()
        known = metric_list() | recording_rules()
        bare = re.sub(r'(?m)^ *#.*$|"[^"]*"', "", text)
        found = re.findall(r"\b(?:\w+:)?percs_\w+(?::\w+)?", bare)
        self.assertIn("percs_link_up", found)
        self.assertLessEqual(set(found), known)
        page = (ROOT / "docs" / "metrics.md").read_text()
        self.assertEqual(re.findall(r"- alert: (\w+)", text),
                         re.findall(r"(?m)^\| `(Percs\w+)` \| .+ \| .+ \|$", page))

    def test_files_are_those_that_the_program_wrote(self):
        sources = ["package.json", "package-lock.json", "tsconfig.json"]
        sources += [f"src/{path.name}" for path in (PROGRAM / "src").iterdir()]
        files = sources + [f"dashboards/{name}" for name in self.boards]
        npm_program.check_sums(self, PROGRAM, PROGRAM / "dashboards" / "SHA256SUMS", files)

    def test_the_program_has_no_any_and_no_cast(self):
        npm_program.check_types(self, PROGRAM)

    @npm_program.FULL
    def test_the_program_writes_the_same_again(self):
        npm_program.check_same_again(self, PROGRAM, "dashboards")


if __name__ == "__main__":
    unittest.main()
