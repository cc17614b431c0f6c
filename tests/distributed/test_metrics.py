"""Pages of metrics as a scraper gets them: blades on them, and how many series there can be.

Method: two daemons; scenarios with Cell blades and with triblades, each counter on the pages
compared with `percsctl counters`; a hub that is observed by virtual channel; then a supernode of
traffic, to which faults are given while the series of each hub are counted.
"""

import collections
import pathlib
import re
import unittest
import urllib.request

from fabric import PATIENCE_SECONDS
from test_cli import BAD_INPUT, ENDLESS, FAILED, SCENARIOS, TINY, USAGE, CliTest

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


class CounterListTest(CliTest):
    def test_every_listed_counter_is_explained_and_is_in_a_report(self):
        listed = {c["name"]: c for c in self.good_json("counters", "--list")}
        report = self.good_json("run", self.write("tiny.yaml", TINY))
        for name, counter in listed.items():
            self.assertTrue(counter["meaning"] and counter["unit"], name)
            if name.startswith("vcs."):  # of one hub of a fabric alone
                continue
            place = report
            for part in name.replace("CLASS", "LL").split("."):
                place = place[int(part)] if isinstance(place, list) else place[part]
            self.assertIsInstance(place, int, name)
        self.assertEqual("percs_nmmu_translations_total", listed["nmmu.hits"]["metric"])
        self.assertIn("percs_packets_created_total", self.good("counters", "--list"))
        self.assertEqual(USAGE, self.ctl("counters", "--list", "--per-node").returncode)


class MetricsTest(CliTest):
    def setUp(self):
        super().setUp()
        self.up = self.good_json("up", "--daemons", 2, "--metrics", "127.0.0.1:0")
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def fetch(self, url):
        with self.opener.open(url, timeout=PATIENCE_SECONDS) as answer:
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

    def of_channels(self):
        """(hub, port, vc) -> [bytes, packets, flits] that the pages have."""
        seen = collections.defaultdict(dict)
        for name, labels, value in self.samples():
            if name.startswith("percs_vc_transmitted_"):
                seen[labels["hub"], labels["port"], labels["vc"]][name.split("_")[3]] = value
        return seen

    def test_one_hub_is_observed_by_virtual_channel_and_no_other(self):
        hub = "sn0-d1-h0"
        self.assertEqual(FAILED, self.ctl("observe", hub, "--metrics-detail", "vc").returncode,
                         "there is no hub yet")
        self.good("apply", self.write("endless.yaml", ENDLESS))
        self.assertEqual({}, self.of_channels())
        self.assertEqual(f"{hub}: metrics detail vc\n",
                         self.good("observe", hub, "--metrics-detail", "vc"))
        while not any(sent["packets"] for sent in self.of_channels().values()):
            self.assertEqual("running", self.good_json("status")["state"])
        self.good("stop", "--wait")
        seen = self.of_channels()
        self.assertEqual({hub}, {name for name, _, _ in seen})
        (node,) = self.good_json("counters", hub, "--vc")["nodes"]
        there = {(hub, vc["port"], str(vc["vc"])): {
            what: vc[what] for what in ("bytes", "packets", "flits")}
            for vc in node["vcs"] if not vc["port"].startswith("HFI")}
        self.assertGreater(len(there), 2)
        self.assertEqual(there, {key: sent for key, sent in seen.items() if sent["flits"]})
        self.good("apply", "endless.yaml")
        while not any(sent["packets"] for sent in self.of_channels().values()):
            self.assertEqual("running", self.good_json("status")["state"])
        self.assertEqual({hub}, {name for name, _, _ in self.of_channels()},
                         "the detail lasts for later scenarios")
        self.good("stop", "--wait")
        self.good("observe", hub, "--metrics-detail", "port")
        self.assertEqual({}, self.of_channels())
        done = self.ctl("observe", "sn9-d0-h0", "--metrics-detail", "vc")
        self.assertEqual(BAD_INPUT, done.returncode, done.stderr)
        self.assertRegex(done.stderr, "^percsctl observe: .*sn9-d0-h0")
        self.bad(USAGE, "percsctl observe: nothing to set: give --log-level, or hubs and "
                 "--metrics-detail", "observe")

    def log(self, index):
        """Of the controller, then of the daemons."""
        (fabric,) = self.good_json("ps")
        return pathlib.Path(fabric["processes"][index]["log"]).read_text()

    def test_the_level_of_logs_is_set_while_processes_run(self):
        self.good("apply", self.write("endless.yaml", ENDLESS))
        self.good("fault", "link-down", "sn0-d0-h0:LL0")
        self.assertIn("changes to down at", self.log(0), "what is told by default")
        self.assertNotIn("fault actions", self.log(1))
        self.assertEqual("log level of all processes: debug\n",
                         self.good("observe", "--log-level", "debug"))
        self.good("fault", "link-up", "sn0-d0-h0:LL0")
        self.wait_for("it to be told", lambda: "fault actions" in self.log(1))
        self.assertRegex(self.log(1),
                         r"(?m)^.*debug.* run 1: \d+ fault actions in the window from ")
        self.good("observe", "--log-level", "error")
        lengths = [len(self.log(index)) for index in range(3)]
        self.good("fault", "link-down", "sn0-d0-h0:LL0")
        self.good("stop", "--wait")
        self.assertEqual(lengths, [len(self.log(index)) for index in range(3)])
        self.bad(BAD_INPUT, 'percsctl observe: log level "loud": expected debug, '
                 "info, warning, error or off", "observe", "--log-level", "loud")

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
