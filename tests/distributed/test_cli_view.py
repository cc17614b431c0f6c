"""percsctl view: one file, whose moments have the numbers of the run."""

import base64
import gzip
import json
import re
import unittest

from test_cli import BAD_INPUT, OK, SCENARIOS, CliTest

BYTES_MAX = 2_000_000
VIOLATION = 6
WAYS = {"forward": 5, "backward": 11}  # where the columns of a way begin


class Recorded:
    """What the page makes of the messages in a file."""

    def __init__(self, path):
        self.html = path.read_text()
        packed = re.search(r'<script type="text/plain" id="recorded">([\w+/=]+)</script>',
                           self.html)[1]
        feed = gzip.decompress(base64.b64decode(packed)).decode()
        self.messages = [(m[1], json.loads(m[2])) for m in re.finditer(
            r"event: (\w+)\ndata: (.*)\n\n", feed)]
        self.rows, self.events, self.totals, self.times = {}, [], [], []
        for _, data in self.messages:
            self.rows.update(data.get("links", {}).get("rows", {}))
            self.events += data.get("events", [])
            self.times.append(int(data["status"]["virtual_time"]))
            counters = data["counters"]["nodes"][0]["counters"]
            self.totals.append(int(counters.get("packets_delivered", 0)))
        self.status = self.messages[-1][1]["status"]

    def flits(self):
        return sum(row[at] for row in self.rows.values() for at in WAYS.values())


class ViewTest(CliTest):
    def view(self, *arguments, code=OK):
        done = self.ctl("view", *arguments, "-o", "run.html", "--format", "json")
        self.assertEqual(code, done.returncode, done.stderr)
        return (json.loads(done.stdout), Recorded(self.folder / "run.html")) if code == OK else \
            done.stderr

    def same(self, told, recorded, result):
        self.assertEqual(result["digest"], told["digest"])
        self.assertEqual(result["packets_delivered"], recorded.totals[-1])
        self.assertEqual(result["flit_hops"], recorded.flits())
        self.assertEqual("FABRIC_STATE_FINISHED", recorded.status["state"])

    def test_the_numbers_are_those_of_the_run(self):
        scenario = SCENARIOS / "link-failure.yaml"
        result = self.good_json("run", scenario, "--events")
        self.write("result.json", json.dumps(result))
        told, recorded = self.view(scenario, "--result", "result.json", "--threads", 2)
        self.same(told, recorded, result)
        self.assertEqual([(e["sequence"], e["at_ps"], e["kind"], e["subject"])
                          for e in result["events"]],
                         [(int(e["sequence"]), int(e["at"]), e["kind"], e["subject"])
                          for e in recorded.events])
        self.assertGreater(len(recorded.messages), 20)
        self.assertEqual("snapshot", recorded.messages[0][0])
        self.assertEqual({"delta"}, {kind for kind, _ in recorded.messages[1:]})
        self.assertEqual(sorted(recorded.times), recorded.times)
        self.assertEqual(sorted(recorded.totals), recorded.totals)
        self.assertLess(recorded.totals[len(recorded.totals) // 2], recorded.totals[-1])

    def test_the_file_is_small_and_asks_nothing_of_any_server(self):
        told, recorded = self.view(SCENARIOS / "supernode-alltoall.yaml")
        self.assertEqual(told["bytes"], len(recorded.html))
        self.assertLess(told["bytes"], BYTES_MAX)
        self.assertEqual(496, len(recorded.rows))
        markup = re.sub(r"<(script|style)([^>]*)>.*?</\1>", r"<\1\2>", recorded.html, flags=re.S)
        self.assertEqual(["href=\"data:,\""], re.findall(r"\b(?:src|href)=\S[^> ]*", markup))
        self.assertIn("default-src 'none'", recorded.html)

    def test_a_journal_and_a_checkpoint_are_run_again(self):
        scenario = SCENARIOS / "link-failure.yaml"
        self.good("up", "--daemons", 2)
        self.good("apply", scenario, "--wait")
        live = self.good_json("result")
        state = self.folder / "state" / "percs" / "default"
        told, recorded = self.view(state)
        self.same(told, recorded, live)
        self.good("checkpoint", "here")
        _, recorded = self.view("here")
        self.assertEqual(live["packets_delivered"], recorded.totals[-1])
        self.assertIn("no run 7", self.view(state, "--run", 7, code=BAD_INPUT))

    def test_another_run_is_refused(self):
        scenario = SCENARIOS / "two-hubs.yaml"
        self.write("result.json", self.good("run", scenario, "--format", "json"))
        self.assertIn("this is another run", self.view(
            scenario, "--set", "topology.hubs=4", "--result", "result.json", code=VIOLATION))
        self.assertIn("--result result.json", self.view("result.json", code=BAD_INPUT))
        self.assertIn("is no result",
                      self.view(scenario, "--result", scenario, code=BAD_INPUT))


if __name__ == "__main__":
    unittest.main()
