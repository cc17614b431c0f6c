"""percsctl run --page: a run in one process as a browser meets it.

Method: percsctl runs a scenario with its page; this test reads the feed and asks as the page does.
Of a machine of 544 hubs the feed has links by supernode. What it says is held against what the
machine's links and counters say, and against a run without a page.
"""

import contextlib
import json
import signal
import subprocess
import unittest

from fabric import BIN
from test_cli import LIMIT_SECONDS, SCENARIOS, CliTest
from test_page import Page

DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
LARGE = """\
name: large
topology: {supernodes: 17, drawers: 4, hubs: 8}
workload:
  pattern: {pattern: uniform, load: 0.3, message_bytes: 1KiB}
faults: [{at: 1ns, link_down: "sn3-d0-h0:LL0"}]
stop_at: 100ms
"""


def shares(cells):
    """What the two digits of each cell say."""
    values = [DIGITS.index(digit) for digit in cells]
    return [(64 * high + low) / 4095 for high, low in zip(values[::2], values[1::2])]


class RunPageTest(CliTest):
    @contextlib.contextmanager
    def running(self, *arguments):
        """The page of `percsctl run`, which is interrupted in the end."""
        with subprocess.Popen([BIN / "percsctl", "run", *arguments, "--page", "127.0.0.1:0"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              cwd=self.folder) as run:
            try:
                first = run.stderr.readline()
                self.assertTrue(first.startswith("page: http://127.0.0.1:"), first)
                yield Page(first.removeprefix("page: ").strip())
            finally:
                run.send_signal(signal.SIGINT)
                run.communicate(timeout=LIMIT_SECONDS)

    def test_a_large_machine_is_told_by_supernode(self):
        with self.running(self.write("large.yaml", LARGE)) as page:
            outputs, rows, delivered, events = None, {}, 0, []
            for kind, data in page.feed():
                if kind == "hello":
                    self.assertEqual({"role": "viewer"}, data)
                    continue
                matrix = data.get("matrix", {})
                if "outputs" in matrix:
                    self.assertEqual(17, matrix["supernodes"])
                    outputs = [value for value, times in matrix["outputs"] for _ in range(times)]
                rows |= matrix.get("rows", {})
                events += data.get("events", [])
                if "counters" in data:
                    counted = data["counters"]["nodes"][0]["counters"]
                    delivered = int(counted.get("packets_delivered", 0))
                used = [share for row in rows.values() for share in shares(row[0])]
                if len(rows) == 17 and delivered > 1000 and sum(map(bool, used)) > 200:
                    break
            self.assertEqual(17 * 17, len(outputs))
            self.assertLessEqual(max(used), 1)
            self.assertIn("fault_injected", [event["kind"] for event in events])
            # One link of supernode 3 is down, which is two outputs.
            for name, (_, down) in rows.items():
                self.assertEqual([[3, 2]] if name == "3" else [], down, name)
            listed = page.call("ListLinks", node="sn3")["links"]
            within = [link for link in listed
                      if all(end.startswith("sn3-") for end in link["ends"].split("/"))]
            self.assertEqual(outputs[3 * 17 + 3], 2 * len(within))
            self.assertEqual(sum(outputs[3 * 17:4 * 17]), 2 * len(within) +
                             len(listed) - len(within))
            self.assertEqual(["sn3-d0-h0:LL0"],
                             [link["name"] for link in listed if not link.get("up")])
            counters = page.call("GetCounters", node="sn16-d3-h7")
            self.assertLess(0, int(counters["nodes"][0]["counters"]["packets_created"]))
            self.assertEqual({}, page.call("ListTrees").get("trees", {}))
            for status, words, method, request in (
                    (403, "needs the role operator", "CreateFault", {}),
                    (403, "needs the role operator", "Pause", {}),
                    (404, "sn0 to sn16", "ListLinks", {"node": "sn17"}),
                    (404, "there is no", "ListTrees", {"name": "none"})):
                code, text = page.ask("POST", f"/api/{method}", json.dumps(request))
                self.assertEqual(status, code, text)
                self.assertIn(words, text)

    def test_looking_changes_nothing_and_ranks_are_told(self):
        scenario = SCENARIOS / "trace-replay.yaml"
        settings = ("--set", "run.clock=live", "--set", "run.pace=20us/s")
        states = {}
        with self.running(scenario, *settings) as page:
            for _, data in page.feed():
                for hub, (ranks, letters) in data.get("ranks", {}).items():
                    self.assertEqual(len(ranks), len(letters))
                    states.setdefault(hub, set()).update(letters)
                if len(states) == 32 and "w" in set().union(*states.values()):
                    break
        self.assertLessEqual(set().union(*states.values()), set("icsrwd"))
        plain = self.good_json("run", scenario)
        done = self.ctl("run", scenario, "--page", "127.0.0.1:0", "--format", "json")
        self.assertEqual(plain["digest"], json.loads(done.stdout)["digest"])

    def test_it_is_served_where_only_this_machine_can_open_it(self):
        done = self.ctl("run", SCENARIOS / "two-hubs.yaml", "--page", "0.0.0.0:0")
        self.assertNotEqual(0, done.returncode)
        self.assertIn("would be readable from anywhere", done.stderr)


if __name__ == "__main__":
    unittest.main()
