"""Pages of metrics as a scraper gets them: blades on them, and how many series there can be.

Method: two daemons; scenarios with Cell blades and with triblades, each counter on the pages
compared with `percsctl counters`; then a supernode of traffic, to which faults are given while the
series of each hub are counted.
"""

import collections
import re
import unittest
import urllib.request

from test_cli import SCENARIOS, CliTest

FAULTS = 30
LISTED = 16  # and one series for all others
SERIES_MAX = 1100
SERIES = re.compile(r"(?m)^(\w+)\{([^}]*)\} (\S+)$")
SUPERNODE = """\
name: busy
topology: {supernodes: 1, drawers: 4, hubs: 8}
workload:
  pattern: {pattern: uniform, load: 0.02, reliable: true, payload: verified}
run: {clock: live, pace: 5us/s}
"""


class MetricsTest(CliTest):
    def setUp(self):
        super().setUp()
        self.up = self.good_json("up", "--daemons", 2, "--metrics", "127.0.0.1:0")
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def fetch(self, url):
        with self.opener.open(url, timeout=60) as answer:
            return answer.read().decode()

    def samples(self):
        """(name, labels, value) of all processes; those of a hub first."""
        targets = re.findall(r"127\.0\.0\.1:\d+", self.fetch(
            self.up["metrics"].replace("/metrics", "/discovery")))
        self.assertEqual(3, len(targets))
        for target in targets:
            for name, labels, value in SERIES.findall(self.fetch(f"http://{target}/metrics")):
                yield name, dict(re.findall(r'(\w+)="([^"]*)"', labels)), float(value)

    def series_of_hubs(self):
        return collections.Counter(labels["hub"] for _, labels, _ in self.samples()
                                   if "hub" in labels)

    def check_blades(self, file, *names):
        self.good("apply", SCENARIOS / file, "--wait")
        seen = collections.defaultdict(dict)
        for name, labels, value in self.samples():
            if name == "percs_blade_events_total":
                seen[labels["hub"]][labels["counter"]] = value
            elif name == "percs_packets_created_total":
                seen[labels["hub"]][name] = value
        self.assertEqual(set(names), {hub for hub, found in seen.items() if len(found) > 1})
        for name in names:
            (node,) = self.good_json("counters", name)["nodes"]
            expected = dict(node["blades"], percs_packets_created_total=node["packets_created"])
            self.assertEqual(expected, seen[name])
            self.assertGreater(seen[name]["dma_bytes"], 0)
            self.assertGreater(seen[name]["percs_packets_created_total"], 0)

    def test_counters_of_blades_are_those_of_percsctl(self):
        self.check_blades("cell-blades.yaml", *BLADES["cell-blades.yaml"])
        self.check_blades("triblades.yaml", *BLADES["triblades.yaml"])

    def test_series_do_not_grow_with_traffic_or_faults(self):
        self.good("apply", self.write("busy.yaml", SUPERNODE))
        before = self.series_of_hubs()
        self.assertEqual(32, len(before))
        self.assertLessEqual(max(before.values()), SERIES_MAX)
        for i in range(FAULTS):
            self.good("fault", "create", f"f{i}", "--kind", "latency", "--latency", "300ns",
                      "--link", f"sn0-d{i // 8}-h{i % 8}:LR{i % 24}")
        faults = {labels["fault"]: value for name, labels, value in self.samples()
                  if name == "percs_fault_info"}
        self.assertEqual(LISTED + 1, len(faults))
        self.assertEqual(FAULTS - LISTED, faults["_overflow"])
        delivered = sum(value for name, _, value in self.samples()
                        if name == "percs_packets_delivered_total")
        self.assertGreater(delivered, 100)
        self.assertEqual(before, self.series_of_hubs())


BLADES = {"cell-blades.yaml": ("blade0", "blade1"), "triblades.yaml": ("triblade0", "triblade1")}

if __name__ == "__main__":
    unittest.main()
