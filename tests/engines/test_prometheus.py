"""A real Prometheus watches a real fabric.

Method: `percsctl up --metrics` starts daemons with traffic that does not end; Debian's Prometheus
finds them through the controller, scrapes every second and evaluates the shipped rules. A link cut
by command must ring its alert, and restored, clear it. Every query of the committed dashboards is
compared by value with what percsctl says: rates while traffic runs, everything else once it has
stopped, and again after collectives. Everything listens on 127.0.0.1 and ends with the test.
"""

import json
import math
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "engines"))
import dashboards  # noqa: E402
import percsctl_truth  # noqa: E402

BIN = pathlib.Path(os.environ.get("PERCS_BIN_DIR", ROOT / "build" / "bin"))
RULES = ROOT / "deploy" / "prometheus"
LIMIT_SECONDS = 60

TRAFFIC = """\
name: watched
topology: {supernodes: 1, drawers: 2, hubs: 2}
workload:
  pattern: {pattern: uniform, load: 0.1, reliable: true, payload: verified}
service:
  probe_rounds: 2
  probe_period: 40us
run: {clock: live, pace: 20us/s}
"""
COLLECTIVES = """\
name: collectives
topology: {supernodes: 1, drawers: 2, hubs: 2}
trees:
- {name: world, members: all, fan_out: 2}
workload:
  cau: {steps: "allreduce, multicast", iterations: 50, operation: sum, type: double, operands: 4}
"""
HUBS = ["sn0-d0-h0", "sn0-d0-h1", "sn0-d1-h0", "sn0-d1-h1"]
OBSERVED = HUBS[:1]  # by virtual channel, the others by port
# Of the host and of calls, which percsctl says nothing about: they must be there and be numbers
# above zero.
OF_THE_HOST = {"process_cpu_seconds_total", "process_resident_memory_bytes", "process_threads",
               "process_open_fds", "grpc_server_msg_received_total", "grpc_server_handled_total",
               "grpc_server_handling_seconds_bucket"}
RATE_TOLERANCE = 0.25  # both sides watch some 15 s, but not the same ones
SHARE_TOLERANCE = 0.01


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
        cls.good("observe", *OBSERVED, "--metrics-detail", "vc")
        cls.start_prometheus()

    cut_ends = set()  # (hub, port) that went down once in this run, by this test's own commands

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

    def test_1_every_alert_is_tested_to_ring_and_to_clear(self):
        alerts = re.findall(r"- alert: (\w+)", (RULES / "alerts.yml").read_text())
        self.assertGreaterEqual(len(alerts), 6)
        for tests in re.split(r"(?m)^  - interval", (RULES / "alerts_test.yml").read_text())[1:]:
            seen = [(name, "exp_alerts" in rest) for name, rest in re.findall(
                r"alertname: (\w+)((?:\}|(?:,|\n) +exp_alerts)?)", tests)]
            for name in {name for name, rings in seen if rings}:
                states = [rings for other, rings in seen if other == name]
                if states[-1] is False and name in alerts:
                    alerts.remove(name)
        self.assertEqual([], alerts, "nothing shows that these ring and clear again")

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
        # 50 ms of wall time, a twentieth of the time between two scrapes.
        link, ends = "sn0-d0-h0:LR1", {("PercsLinkDown", "sn0-d0-h0", "LR1"),
                                       ("PercsLinkDown", "sn0-d1-h1", "LR0")}
        at = self.ask("status")["virtual_ps"] + 100_000_000  # 5 s of wall time
        self.good("fault", "link-down", link, "--at", f"{at}ps")
        self.good("fault", "link-up", link, "--at", f"{at + 1_000_000}ps")
        self.wait_for("the alert of the flap", lambda: ends <= self.ringing())
        self.wait_for("it to clear", lambda: not self.ringing() & ends)
        type(self).cut_ends = {end[1:] for end in both | ends}

    def test_3_rates_of_the_dashboards_are_those_of_percsctl(self):
        self.wait_for("five targets", lambda: self.sum("up") == 5)
        before = self.snapshot()
        status = before["status"]
        end = status["virtual_ps"] + 17 * status["pace_ps_per_wall_second"]
        self.wait_for("17 s of pace", lambda: self.ask("status")["virtual_ps"] > end)
        after = self.snapshot()
        self.assertEqual("running", after["status"]["state"])
        truth = percsctl_truth.rates(before, after)
        self.assertEqual(set(OBSERVED), {dict(labels)["hub"] for labels in self.query(
            "percs_vc_transmitted_bytes_total > 0")})
        compared = 0
        for query, variables, expr in self.expanded_queries():
            if not dashboards.is_rate(expr) or query.annotation:
                continue
            compared += 1
            with self.subTest(query.where, hub=variables["hub"]):
                samples = self.samples(expr)
                if dashboards.names(expr) & OF_THE_HOST:
                    self.assertTrue(samples and all(v > 0 for v in samples.values()), samples)
                elif expr.startswith("histogram_quantile"):
                    self.assert_quantile(expr, variables["hub"], samples, after)
                else:
                    self.assert_close(dashboards.evaluate(expr, truth), samples)
        self.assertGreater(compared, 15)

    def test_5_values_of_the_dashboards_are_those_of_percsctl(self):
        self.good("fault", "create", "noise", "--kind", "bit_errors", "--flit-error-rate", "1e-2",
                  "--link", "sn0-d0-h0:LL0")
        self.wait_for("replays", lambda: self.sum("percs_link_replays_total") > 0)
        # Its own page, the controller's, is not read at the same time as those of daemons.
        self.wait_for("the fault's series", lambda: self.sum(
            'percs_fault_info{fault="noise",target="sn0-d0-h0:LL0"}') == 1)
        for i in range(20):  # more than have series of their own
            self.good("fault", "create", f"later{i}", "--kind", "latency", "--latency", "300ns",
                      "--link", f"{HUBS[i % 4]}:LL0", "--at", f"{i + 1}s", "--duration", "1us")
        self.wait_for("all of them", lambda: self.sum('percs_fault_info{fault="_overflow"}') > 0)
        self.assertEqual(17, self.sum("count(percs_fault_info)"))
        for i in range(20):
            self.good("fault", "delete", f"later{i}")
        self.good("stop")
        self.wait_for("the end", lambda: self.ask("status")["state"] in ("idle", "finished"))
        self.assert_all_values()
        events = {dict(k)["event"]: v for k, v in self.samples(
            "sum by (event) (percs_service_events_total)").items()}
        self.assertGreater(events["answer"], 0)

    def test_6_values_of_collectives_are_those_of_percsctl(self):
        scenario = self.folder / "collectives.yaml"
        scenario.write_text(COLLECTIVES)
        self.good("apply", scenario, "--wait")
        # What was observed lasts until another scenario.
        self.good("observe", *OBSERVED, "--metrics-detail", "vc")
        type(self).cut_ends = set()
        self.assert_all_values()
        self.assertGreater(self.sum('percs_cau_events_total{counter="reductions"}'), 0)

    def ask(self, *arguments):
        return json.loads(self.good(*arguments, "--format", "json"))

    def snapshot(self):
        return percsctl_truth.snapshot(self.ask, HUBS, OBSERVED)

    def expanded_queries(self):
        """Each query with each value that the variables of its dashboard can have."""
        for dashboard in dashboards.load().values():
            has_hub = any(v["name"] == "hub" for v in dashboard["templating"].get("list", []))
            for hub in HUBS if has_hub else [None]:
                variables = {"__rate_interval": "15s", "hub": hub}
                for query in dashboards.queries(dashboard):
                    yield query, variables, query.expanded(
                        {k: v for k, v in variables.items() if v is not None})

    def samples(self, expr):
        found = {}
        for labels, value in self.query(expr).items():
            key = dashboards.bare({k: v for k, v in labels if k != "peer_port"})
            while key in found:  # several processes without labels of their own
                key += (("again", "1"),)
            found[key] = value
        return found

    def assert_all_values(self):
        seen = self.snapshot()
        truth = percsctl_truth.metrics(seen)
        truth["percs_link_down_total"] = [
            (labels, int((labels["hub"], labels["port"]) in self.cut_ends))
            for labels, _ in truth["percs_link_up"]]
        now = time.time()  # of this host, as is Prometheus' own
        self.wait_for("a scrape of every process", lambda: self.sum(
            f"count(timestamp(process_threads) > {now:.3f})") == 1 + len(HUBS))
        compared = 0
        for query, variables, expr in self.expanded_queries():
            if dashboards.is_rate(expr) or "ALERTS" in expr:
                continue
            compared += 1
            with self.subTest(query.where, hub=variables["hub"]):
                samples = self.samples(expr)
                if dashboards.names(expr) & OF_THE_HOST:
                    self.assertTrue(samples and all(v > 0 for v in samples.values()), samples)
                    continue
                expected = dashboards.evaluate(expr, truth)
                self.assertEqual(set(expected), set(samples))
                for key, value in expected.items():
                    self.assertTrue(math.isclose(value, samples[key], rel_tol=1e-6, abs_tol=1e-15),
                                    f"{key}: percsctl {value}, Prometheus {samples[key]}")
        self.assertGreater(compared, 40)

    def assert_close(self, expected, samples):
        self.assertEqual(set(expected), set(samples))
        for key, value in expected.items():
            self.assertLessEqual(abs(value - samples[key]),
                                 RATE_TOLERANCE * abs(value) + SHARE_TOLERANCE,
                                 f"{key}: percsctl {value}, Prometheus {samples[key]}")

    def assert_quantile(self, expr, hub, samples, seen):
        """Three buckets a decade: a quantile is known to a factor of 10^(1/3), 2.2, either way."""
        if "message" in expr and not seen["counters"][HUBS[0]]["latency_ns"]["message"]["count"]:
            return
        share = float(re.match(r"histogram_quantile\(([\d.]+)", expr)[1])
        (value,) = samples.values()
        low, high = percsctl_truth.quantile(seen, expr, share, hub)
        self.assertTrue(low / 2.3 <= value <= high * 2.3, f"{low} to {high}, Prometheus {value}")

    def test_6_legends_name_labels_that_are_there(self):
        legends = 0
        for query, variables, expr in self.expanded_queries():
            wanted = set(re.findall(r"\{\{(\w+)\}\}", query.legend))
            series = self.query(expr)
            with self.subTest(query.where, hub=variables["hub"]):
                for labels in series:
                    self.assertLessEqual(wanted, {k for k, _ in labels})
                texts = [re.sub(r"\{\{(\w+)\}\}", lambda m: dict(labels)[m[1]], query.legend)
                         for labels in series]
                if not query.table:
                    self.assertEqual(len(set(texts)), len(texts), "two series of one legend")
                legends += len(texts)
        self.assertGreater(legends, 100)


if __name__ == "__main__":
    unittest.main()
