"""The page's HTTP server as a browser or an attacker meets it: a real controller and real daemons.

Method: percsctl starts a fabric with its page; this test speaks HTTP to it with sockets, reads the
feed, and compares what it says with percsctl's own numbers. tests/engines/test_page_browser.py has
the page itself in a browser.
"""

import bisect
import collections
import contextlib
import http.client
import json
import os
import pathlib
import re
import socket
import ssl
import unittest
import urllib.parse

from fabric import PATIENCE_SECONDS
from test_cli import CliTest
from test_cli_view import Recorded

READERS_MAX = 16
HUBS = """\
name: page
topology: {supernodes: 1, drawers: 2, hubs: 2}
workload:
  pattern: {pattern: uniform, load: 0.05, reliable: true, payload: verified}
run: {clock: live, pace: 20us/s}
"""
LINK = "sn0-d0-h0:LL0"
# Sanitizers keep what was freed for a while.
GROWTH_BYTES_MAX = (512 if os.environ.get("PERCS_SANITIZER") else 32) << 20
FULL = unittest.skipUnless(os.environ.get("PERCS_FULL") == "1", "takes long: --full")


def resident_bytes(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return 1024 * int(re.search(r"VmRSS:\s*(\d+)", status)[1])


class Page:
    """What a browser does with the link."""

    def __init__(self, link, context=None):
        parts = urllib.parse.urlsplit(link)
        self.scheme, self.host, self.port, self.token = (
            parts.scheme, parts.hostname, parts.port, parts.fragment)
        self.context = context

    def connect(self):
        if self.scheme == "https":
            return http.client.HTTPSConnection(self.host, self.port, timeout=PATIENCE_SECONDS,
                                               context=self.context)
        return http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE_SECONDS)

    def ask(self, method, path, body=None, token=True, **headers):
        """Status and text of the answer."""
        connection = self.connect()
        try:
            own = {"X-Percs-Token": self.token} if token else {}
            connection.request(method, path, body, own | {
                name.replace("_", "-"): value for name, value in headers.items()})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def call(self, method, **request):
        status, text = self.ask("POST", f"/api/{method}", json.dumps(request))
        if status != 200:
            raise AssertionError(f"{method}: {status} {text}")
        return json.loads(text)

    def feed(self):
        """Messages of the feed as (kind, data), for ever."""
        connection = self.connect()
        try:
            connection.request("GET", "/api/events", headers={"X-Percs-Token": self.token})
            answer = connection.getresponse()
            if answer.status != 200:
                raise AssertionError(f"{answer.status} {answer.read()}")
            while line := answer.readline():
                if line.startswith(b"event: "):
                    data = answer.readline().removeprefix(b"data: ")
                    yield line[7:].strip().decode(), json.loads(data)
        finally:
            connection.close()


class PageTest(CliTest):
    def up(self, *flags):
        self.record = self.good_json("up", "--daemons", 2, *flags)
        self.page = Page(self.record["page"])
        return self.page

    def apply(self):
        self.good("apply", self.write("page.yaml", HUBS), "--hold")

    def events(self):
        return map(json.loads, self.good("events", "--format", "json").splitlines())

    def until(self, feed, condition):
        for kind, data in feed:
            if (found := condition(kind, data)) is not None:
                return found
        raise AssertionError("the feed has ended")

    def refused(self, status, words, *request, **headers):
        code, text = self.page.ask(*request, **headers)
        self.assertEqual(status, code, text)
        self.assertIn(words, json.loads(text)["message"])


class FeedTest(PageTest):
    def test_numbers_of_the_feed_are_those_of_percsctl(self):
        self.up()
        self.apply()
        with_links = self.until(self.page.feed(), lambda kind, data: (
            data if kind == "snapshot" and data["links"]["rows"] else None))
        self.assertEqual(6, len(with_links["links"]["rows"]))
        self.good("pause")
        self.wait_for("virtual time to be paused",
                      lambda: self.good_json("status")["state"] == "paused")
        fed = self.until(self.page.feed(), lambda kind, data: (
            data if kind == "snapshot" and data["links"]["rows"] else None))
        now = self.good_json("counters")
        self.assertEqual(now["virtual_ps"], int(fed["counters"]["virtual_time"]))
        counted = fed["counters"]["nodes"][0]["counters"]
        for name in ("packets_created", "packets_delivered", "bytes_delivered", "hops_delivered"):
            self.assertEqual(now["nodes"][0][name], int(counted[name]), name)
        self.assertEqual(now["virtual_ps"], fed["links"]["virtual_time"])
        columns = fed["link_columns"]
        listed = {link["name"]: link for link in self.good_json("links")["links"]}
        self.assertEqual(set(listed), set(fed["links"]["rows"]))
        hubs = {hub["node"]: hub for hub in self.good_json("counters", "--per-node")["nodes"]}
        counts = {name: [sum(hub["drops"].values()), 0]  # no reroute so far
                  for name, hub in hubs.items()}
        self.assertEqual({name: of for name, of in counts.items() if any(of)}, fed.get("hubs", {}))
        for name, row in fed["links"]["rows"].items():
            seen = dict(zip(columns, row))
            self.assertEqual(len(columns), len(row))
            self.assertEqual(listed[name]["up"], bool(seen["up"]), name)
            for way in ("forward", "backward"):
                for counter in ("flits", "packets", "credit_stall_ps", "replays"):
                    self.assertEqual(listed[name][way][counter], seen[f"{way}.{counter}"], name)

    def test_a_fault_made_here_is_told_by_the_feed_and_ends_on_request(self):
        self.up()
        self.apply()
        feed = self.page.feed()
        self.assertEqual(("hello", {"role": "operator"}), next(feed))
        self.until(feed, lambda kind, data: kind == "snapshot" or None)
        fault = {"id": "mine", "inject": {"kind": "FAULT_KIND_LINK_DOWN",
                                          "select": {"link": LINK}}}
        preview = self.page.call("PreviewFault", fault=fault)["preview"]
        self.assertEqual([LINK], preview["targets"])
        self.assertLess(0, int(preview["routes"]))
        self.assertEqual("mine", self.page.call("CreateFault", fault=fault,
                                                lease_wall_ms=60000)["fault"]["id"])
        told = {}

        def rerouted(kind, data):
            told.update((event["kind"], event) for event in data.get("events", []))
            down = [row for name, row in data.get("links", {}).get("rows", {}).items()
                    if name == LINK and not row[2]]
            told.update({"down": True} if down else {})
            return told if {"fault_injected", "alert", "reroute", "down"} <= set(told) else None
        self.until(feed, rerouted)
        listed = {event["sequence"]: event for event in self.events()}
        for event in told.values():
            if event is not True:
                self.assertEqual(event["kind"], listed[int(event["sequence"])]["kind"])
                self.assertEqual(int(event["at"]), listed[int(event["sequence"])]["at_ps"])
        timeline = self.page.call("ListFaults", id="mine")["faults"][0]
        self.assertLess(int(timeline["injected_at"]), int(timeline["committed_at"]))
        self.page.call("DeleteFault", id="mine")
        self.until(feed, lambda kind, data: data.get("links", {}).get("rows", {}).get(
            LINK, [0, 0, 0])[2] or None)

    def test_every_look_is_of_one_virtual_time_also_while_it_passes(self):
        self.up()
        self.apply()
        seen = {}
        for _, data in self.page.feed():
            if "counters" in data:
                # JSON of a message leaves out what is 0, as everything is in the first look.
                at = int(data["counters"].get("virtual_time", 0))
                counters = data["counters"]["nodes"][0]["counters"]
                seen[at] = int(counters.get("packets_delivered", 0))
            if len(seen) == 8:
                break
        self.good("checkpoint", "here")
        self.good("view", "here", "-o", "again.html")
        again = Recorded(self.folder / "again.html")
        for at, delivered in seen.items():
            after = bisect.bisect_left(again.times, at)
            self.assertLessEqual(again.totals[max(after - 1, 0)], delivered, at)
            self.assertLessEqual(delivered, again.totals[after], at)
        self.assertGreater(len(again.times), 100)

    def test_the_clock_is_held_and_advanced(self):
        self.up()
        self.apply()
        at = int(self.page.call("Pause")["at"])
        self.wait_for("pause", lambda: self.good_json("status")["state"] == "paused")
        self.assertEqual(at + 5_000_000, int(self.page.call("StepTime", by=5_000_000)["at"]))
        self.assertEqual("7000000", self.page.call("SetPace", pace=7_000_000)["pace"])
        self.wait_for("the step to end", lambda: self.good_json("status")["state"] == "paused")
        self.refused(400, "a pace of -1ps/s", "POST", "/api/SetPace", '{"pace": -1}')
        self.page.call("Resume")
        self.wait_for("time to pass",
                      lambda: self.good_json("status")["virtual_ps"] > at + 5_000_000)
        self.assertEqual(7_000_000, self.good_json("status")["pace_ps_per_wall_second"])
        self.assertIn("a pace of 30us/s from ", self.good("pace", "30us/s"))
        self.assertIn("no pace limits virtual time from ", self.good("pace", "max"))
        self.assertEqual(0, self.good_json("status")["pace_ps_per_wall_second"])

    def test_a_controller_that_continues_has_the_same_link(self):
        page = self.up()
        self.apply()
        self.good("process", "restart", "controller")
        self.wait_for("the controller", lambda: self.answers(page))
        self.until(page.feed(), lambda kind, data: data.get("links"))

    def answers(self, page):
        try:
            return page.ask("POST", "/api/Status", "{}")[0] == 200
        except ConnectionError:
            return False

    def test_without_a_scenario_the_page_says_so_and_then_follows(self):
        self.up()
        feed = self.page.feed()
        self.assertEqual("FABRIC_STATE_EMPTY", self.until(
            feed, lambda kind, data: data.get("status"))["state"])
        self.apply()
        self.until(feed, lambda kind, data: data.get("links"))


class GuardTest(PageTest):
    def test_the_page_is_whole_and_no_other_page_may_use_it(self):
        self.up()
        connection = self.page.connect()
        self.addCleanup(connection.close)
        connection.request("GET", "/")
        answer = connection.getresponse()
        html = answer.read().decode()
        self.assertIn("<title>PERCS fabric</title>", html)
        self.assertNotRegex(html, r"(?:src|href)=\"(?:https?:)?//")
        policy = answer.headers["Content-Security-Policy"]
        self.assertIn("default-src 'none'", policy)
        self.assertIn("frame-ancestors 'none'", policy)
        for path, kind in (("/page.js", "text/javascript"), ("/page.css", "text/css")):
            connection.request("GET", path)
            answer = connection.getresponse()
            self.assertTrue(answer.headers["Content-Type"].startswith(kind))
            self.assertLess(1000, len(answer.read()))
        status = ("POST", "/api/Status", "{}")
        self.assertEqual(200, self.page.ask(*status)[0])
        own = f"http://{self.page.host}:{self.page.port}"
        self.assertEqual(200, self.page.ask(*status, Origin=own, Sec_Fetch_Site="same-origin")[0])
        self.refused(403, "comes from another page (https://evil.example)", *status,
                     Origin="https://evil.example")
        self.refused(403, "comes from another page (cross-site)", *status,
                     Sec_Fetch_Site="cross-site")
        self.refused(403, "is for the host \"evil.example", *status,
                     Host=f"evil.example:{self.page.port}")
        self.refused(403, "is for the host", "GET", "/", Host="127.0.0.1:1")
        self.refused(401, "X-Percs-Token has no token or another one", *status, token=False)
        self.refused(401, "X-Percs-Token", *status, token=False, X_Percs_Token="0" * 32)
        self.refused(401, "X-Percs-Token", "GET", "/api/events", token=False)

    def test_bad_requests_get_clear_answers(self):
        self.up()
        for path in ("/../etc/passwd", "/%2e%2e/etc/passwd", "/page.js/..", "//", "/index.html"):
            self.refused(404, "no such page", "GET", path)
        self.refused(404, "/api/Nothing is not there", "POST", "/api/Nothing", "{}")
        self.refused(404, "is not there", "POST", "/api/WatchRun", "{}")
        self.refused(404, "is not there", "POST", "/api/../Status", "{}")
        self.refused(405, "POST /api/METHOD", "GET", "/api/Status")
        self.refused(405, "only GET, HEAD and POST", "DELETE", "/")
        self.refused(411, "Content-Length", "POST", "/api/Status", iter([b"{}"]),
                     Transfer_Encoding="chunked")
        self.refused(413, "a body of 65537 bytes; at most 65536", "POST", "/api/Status",
                     " " * 65537)
        self.refused(400, "the body is not a StatusRequest as JSON", "POST", "/api/Status", "{")
        self.refused(400, "the body is not a PauseRequest", "POST", "/api/Pause", '{"x": 1}')
        self.refused(400, "no scenario is applied", "POST", "/api/Pause", "{}")
        deep = '{"fault":' * 5000
        self.refused(400, "the body is not", "POST", "/api/CreateFault", deep)
        with socket.create_connection((self.page.host, self.page.port)) as raw:
            raw.settimeout(PATIENCE_SECONDS)
            raw.sendall(b"\x16\x03\x01 not HTTP\r\n\r\n")
            self.assertNotIn(b" 200 ", raw.recv(4096))
        self.assertEqual(200, self.page.ask("POST", "/api/Status", "{}")[0])

    def test_readers_who_do_not_read_are_few_and_do_not_disturb_others(self):
        self.up()
        self.apply()
        slow = []
        self.addCleanup(lambda: [one.close() for one in slow])
        head = (f"GET /api/events HTTP/1.1\r\nHost: {self.page.host}:{self.page.port}\r\n"
                f"X-Percs-Token: {self.page.token}\r\n\r\n").encode()
        refused = 0
        for _ in range(READERS_MAX + 24):
            one = socket.create_connection((self.page.host, self.page.port))
            one.settimeout(PATIENCE_SECONDS)
            one.sendall(head)
            line = one.recv(12)
            refused += line == b"HTTP/1.1 429"
            slow.append(one)
        self.assertEqual(24, refused)
        self.assertEqual(200, self.page.ask("POST", "/api/Status", "{}")[0])
        for one in slow:
            one.close()
        self.wait_for("room for a reader",
                      lambda: self.page.ask("HEAD", "/")[0] == 200 and self.reads())

    def test_an_attack_costs_no_memory_and_no_answers(self):
        self.attack(slow=80, readers=100)

    @FULL
    def test_a_large_attack_costs_no_memory_and_no_answers(self):
        self.attack(slow=200, readers=1000)

    def attack(self, slow, readers):
        """By those who do not read, who want the feed, and whose requests are none, all at once."""
        self.up()
        self.apply()
        (pid,) = [process["pid"] for process in self.record["processes"]
                  if process["role"] == "controller"]
        self.until(self.page.feed(), lambda kind, data: data.get("links"))
        before = resident_bytes(pid)
        head = (f"GET /api/events HTTP/1.1\r\nHost: {self.page.host}:{self.page.port}\r\n"
                f"X-Percs-Token: {self.page.token}\r\n\r\n").encode()
        kept, answers = [], collections.Counter()
        self.addCleanup(lambda: [one.close() for one in kept])
        for i in range(slow + readers):
            one = self.send(head)
            if i < slow:
                kept.append(one)  # and is never read
            else:
                answers[self.first_line(one)] += 1
                one.close()
        self.assertLessEqual(set(answers), {b"HTTP/1.1 200", b"HTTP/1.1 429", b""}, answers)
        for bad in (b"GET\r\n\r\n", b"\0" * 4096, b"GET / HTTP/9.9\r\n\r\n",
                    b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\n\r\n",
                    b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 50_000 + b"\r\n",
                    b"POST /api/Status HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
                    b"POST /api/Status HTTP/1.1\r\nContent-Length: -1\r\n\r\n"):
            one = self.send(bad)
            self.assertNotIn(b" 200", self.first_line(one), bad[:40])
            one.close()
        self.assertLess(resident_bytes(pid) - before, GROWTH_BYTES_MAX)
        for one in kept:
            one.close()
        self.wait_for("room for a reader",
                      lambda: self.page.ask("HEAD", "/")[0] == 200 and self.reads())
        at = self.good_json("status")["virtual_ps"]
        self.wait_for("time to pass", lambda: self.good_json("status")["virtual_ps"] > at)

    def send(self, text):
        one = socket.create_connection((self.page.host, self.page.port), PATIENCE_SECONDS)
        with contextlib.suppress(OSError):  # it may be closed in the middle of it
            one.sendall(text)
        return one

    def first_line(self, one):
        try:
            return one.recv(12)
        except ConnectionError:
            return b""

    def reads(self):
        try:
            return next(self.page.feed())[0] == "hello"
        except AssertionError:
            return False

    def test_no_page_is_served_unless_asked_for_or_where_it_would_be_open(self):
        self.assertEqual("", self.good_json("up", "--daemons", 1, "--page", "off")["page"])
        done = self.ctl("up", "--name", "wide", "--daemons", 1, "--page", "0.0.0.0:0")
        self.assertNotEqual(0, done.returncode)
        self.assertRegex(done.stderr, "the page at 0.0.0.0:0 would be readable from anywhere")


class RolesTest(PageTest):
    def as_role(self, folder):
        context = ssl.create_default_context(cafile=folder / "ca.pem")
        context.check_hostname = False
        context.load_cert_chain(folder / "identity.pem")
        return Page(self.record["page"], context)

    def test_a_viewer_looks_and_does_not_cut(self):
        self.up("--tls", "--tcp")
        self.assertRegex(self.record["page"], "^https://")
        roles = type(self.folder)(self.record["tls"]).parent
        viewer, operator = self.as_role(roles / "viewer"), self.as_role(roles / "operator")
        self.apply()
        self.assertEqual(("hello", {"role": "viewer"}), next(viewer.feed()))
        self.assertEqual(("hello", {"role": "operator"}), next(operator.feed()))
        fault = {"id": "no", "inject": {"kind": "FAULT_KIND_LINK_DOWN", "select": {"link": LINK}}}
        self.assertIn("preview", viewer.call("PreviewFault", fault=fault))
        self.page = viewer
        self.refused(403, "this request needs the role operator; the certificate has the role "
                     "viewer", "POST", "/api/CreateFault", json.dumps({"fault": fault}))
        self.refused(403, "needs the role operator", "POST", "/api/Shutdown", "{}")
        self.assertEqual("no", operator.call("CreateFault", fault=fault)["fault"]["id"])
        nobody = ssl.create_default_context(cafile=roles / "viewer" / "ca.pem")
        nobody.check_hostname = False
        self.page = Page(self.record["page"], nobody)
        self.refused(401, "no certificate", "POST", "/api/Status", "{}")
        self.refused(401, "no certificate", "GET", "/api/events")


if __name__ == "__main__":
    unittest.main()
