"""A real Prometheus watches a real fabric.

Method: `percsctl up --metrics` starts daemons with traffic that does not end; Debian's Prometheus
finds them through the controller, scrapes every second and evaluates the shipped rules. Values it
has are compared with `percsctl counters` once traffic has stopped; a link cut by command must ring
its alert, and restored, clear it. Everything listens on 127.0.0.1 and ends with the test.
"""

import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("PERCS_BIN_DIR", ROOT / "build" / "bin"))
RULES = ROOT / "deploy" / "prometheus"
LIMIT_SECONDS = 60

TRAFFIC = """\
name: watched
topology: {supernodes: 1, drawers: 2, hubs: 2}
workload:
  pattern: {pattern: uniform, load: 0.02, reliable: true, payload: verified}
run: {clock: live, pace: 20us/s}
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def fetch(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


class PrometheusTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for tool in ("prometheus", "promtool"):
            if not shutil.which(tool):
                raise AssertionError(f"{tool} is not there; deploy/install --engines installs it")
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="percs-prometheus-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.env = dict(os.environ, XDG_STATE_HOME=str(cls.folder / "state"), LC_ALL="C")
        cls.addClassCleanup(cls.ctl, "down", "--all", "--grace", "wall:3s")
        up = json.loads(cls.good("up", "--daemons", 4, "--metrics", "127.0.0.1:0",
                                 "--format", "json"))
        cls.metrics_url = up["metrics"]
        cls.discovery_url = up["metrics"].replace("/metrics", "/discovery")
        scenario = cls.folder / "watched.yaml"
        scenario.write_text(TRAFFIC)
        cls.good("apply", scenario)
        cls.start_prometheus()

    @classmethod
    def ctl(cls, *arguments):
        return subprocess.run([BIN / "percsctl", *map(str, arguments)], env=cls.env, text=True,
                              capture_output=True, timeout=LIMIT_SECONDS, cwd=cls.folder)

    @classmethod
    def good(cls, *arguments):
        done = cls.ctl(*arguments)
        assert done.returncode == 0, f"percsctl {arguments}\n{done.stdout}{done.stderr}"
        return done.stdout

    @classmethod
    def start_prometheus(cls):
        for name in ("rules.yml", "alerts.yml"):
            shutil.copy(RULES / name, cls.folder)
        config = (RULES / "prometheus.yml").read_text()
        shipped = "http://127.0.0.1:9464/discovery"
        assert shipped in config
        (cls.folder / "prometheus.yml").write_text(config.replace(shipped, cls.discovery_url))
        port = free_port()
        cls.api = f"http://127.0.0.1:{port}/api/v1"
        log = open(cls.folder / "prometheus.log", "w")
        cls.addClassCleanup(log.close)
        cls.prometheus = subprocess.Popen(
            ["prometheus", f"--config.file={cls.folder}/prometheus.yml",
             f"--storage.tsdb.path={cls.folder}/data", f"--web.listen-address=127.0.0.1:{port}"],
            stdout=log, stderr=log)

        def end():
            cls.prometheus.terminate()
            cls.prometheus.wait(20)

        cls.addClassCleanup(end)

    def wait_for(self, what, condition):
        last = None
        for _ in range(LIMIT_SECONDS * 4):
            self.assertIsNone(self.prometheus.poll(), (self.folder / "prometheus.log").read_text())
            try:
                last = condition()
                if last:
                    return last
            except OSError as error:
                last = error
            time.sleep(0.25)
        self.fail(f"waited for {what}; last seen: {last}")

    def query(self, expression):
        query = urllib.parse.urlencode({"query": expression})
        data = json.loads(fetch(f"{self.api}/query?{query}"))
        self.assertEqual("success", data["status"])
        return {tuple(sorted(s["metric"].items())): float(s["value"][1])
                for s in data["data"]["result"]}

    def sum(self, expression):
        return sum(self.query(expression).values())

    def ringing(self):
        alerts = json.loads(fetch(f"{self.api}/alerts"))["data"]["alerts"]
        return {(a["labels"]["alertname"], a["labels"].get("hub"), a["labels"].get("port"))
                for a in alerts if a["state"] == "firing"}

    def test_1_rules_hold_their_own_tests(self):
        for arguments in (["check", "rules", RULES / "rules.yml", RULES / "alerts.yml"],
                          ["test", "rules", RULES / "alerts_test.yml"]):
            done = subprocess.run(["promtool", *arguments], text=True, capture_output=True)
            self.assertEqual(0, done.returncode, done.stdout + done.stderr)

    def test_2_every_page_is_clean(self):
        targets = json.loads(fetch(self.discovery_url))
        self.assertEqual(5, len(targets))
        for target in targets:
            page = fetch(f"http://{target['targets'][0]}/metrics")
            done = subprocess.run(["promtool", "check", "metrics"], input=page, text=True,
                                  capture_output=True)
            self.assertEqual((0, ""), (done.returncode, done.stdout + done.stderr))
            self.assertLessEqual(len(re.findall(r"(?m)^percs_.*hub=", page)), 1100)

    def test_3_all_daemons_are_found_and_up(self):
        self.wait_for("five targets", lambda: self.sum("up") == 5)
        self.wait_for("traffic", lambda: self.sum("percs_packets_delivered_total") > 0)
        self.wait_for("a rate per virtual second",
                      lambda: self.sum("class:percs_link_transmitted_bytes:virtual_rate15s") > 0)

    def test_4_a_cut_link_rings_and_clears(self):
        self.wait_for("five targets", lambda: self.sum("up") == 5)
        link, both = "sn0-d0-h0:LR0", {("PercsLinkDown", "sn0-d0-h0", "LR0"),
                                       ("PercsLinkDown", "sn0-d1-h0", "LR0")}
        self.assertFalse(self.ringing() & both)
        self.good("fault", "link-down", link)
        self.wait_for("the alert", lambda: both <= self.ringing())
        self.good("fault", "link-up", link)
        self.wait_for("it to clear", lambda: not self.ringing() & both)

    def test_5_values_are_those_of_percsctl(self):
        self.good("stop")
        status = self.wait_for("the end", lambda: json.loads(
            self.good("status", "--format", "json"))["state"] in ("idle", "finished"))
        self.assertTrue(status)
        hubs = ["sn0-d0-h0", "sn0-d0-h1", "sn0-d1-h0", "sn0-d1-h1"]
        for hub in hubs:
            counters = json.loads(self.good("counters", hub, "--format", "json"))
            (node,) = counters["nodes"]
            self.wait_for(f"{hub} as percsctl has it", lambda node=node, hub=hub: self.sum(
                f'percs_packets_delivered_total{{hub="{hub}"}}') == node["packets_delivered"])
            for link_class in ("LL", "LR"):
                expected = node["ports"][link_class]["flits"]
                self.assertGreater(expected, 0)
                self.assertEqual(expected, self.sum(
                    f'percs_link_transmitted_flits_total{{hub="{hub}",class="{link_class}"}}'))


if __name__ == "__main__":
    unittest.main()
