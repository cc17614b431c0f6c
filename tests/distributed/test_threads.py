"""Four daemons of eight hubs each, while everything that can be asked of them is asked at once.

Method: a run with cuts, errors, lost lanes, trees, multicast and the clock has the digest of one
process, although watchers ask for status, links, counters and metrics all the time; then a live
fabric takes commands, has programs at windows of its hubs, and loses a daemon that comes back.
Every process must end by itself with exit code 0 and no word of a sanitizer on its standard error.
With `tests/run --tsan` all of them, and every percsctl, look for races, and what they found is read
by tests/support/tsan_reports.py.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from tests.support import tsan_reports  # noqa: E402
from tests.support.fabric import wait_for  # noqa: E402

BIN = pathlib.Path(os.environ.get("PERCS_BIN_DIR", ROOT / "build" / "bin"))
LIMIT_SECONDS = 240  # of one command, with sanitizers
DAEMONS = 4

EVERYTHING = """\
name: everything
topology: {supernodes: 1, drawers: 4, hubs: 8}
clock: {period: 5us}
multicast:
  - {name: everybody, source: sn0-d0-h0}
trees:
  - {name: world, members: all}
workload:
  all_to_all: {bytes: 4KiB}
faults:
  - {at: 1us, link_errors: {link: sn0-d0-h1/sn0-d1-h1, flit_error_rate: 0.01}}
  - {at: 2us, lanes_lost: {link: sn0-d0-h2/sn0-d1-h2, count: 2}}
  - {at: 3us, link_down: sn0-d0-h0/sn0-d1-h0}
  - {at: 60us, link_up: sn0-d0-h0/sn0-d1-h0}
"""
LIVE = """\
name: live
topology: {supernodes: 1, drawers: 4, hubs: 8}
workload:
  pattern: {pattern: uniform, load: 0.02, reliable: true, payload: verified}
run: {clock: live, pace: 20us/s}
"""


class ThreadsTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="percs-threads-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.controller = f"unix:{self.folder}/controller"
        self.env = dict(os.environ, TMPDIR=str(self.folder))
        if os.environ.get("PERCS_SANITIZER") == "tsan":
            self.env["TSAN_OPTIONS"] = f"log_path={self.folder}/races:exitcode=0:history_size=4"
        self.processes, self.urls = {}, {}
        self.start("percs-controller", "--listen", self.controller, "--daemons", DAEMONS,
                   "--state-dir", self.folder / "state")
        for index in range(DAEMONS):
            self.start_daemon(index)
        self.wait_for("all daemons", lambda: DAEMONS == sum(
            process["connected"] for process in json.loads(
                self.control("status", "--format", "json"))["processes"]))

    def start_daemon(self, index):
        self.start("percsd", "--controller", self.controller, "--index", index)

    def start(self, program, *arguments):
        name = f"{program}-{len(list(self.folder.glob('*.err')))}"
        errors = open(self.folder / f"{name}.err", "w")
        self.addCleanup(errors.close)
        process = subprocess.Popen(
            [BIN / program, *map(str, arguments), "--metrics", "127.0.0.1:0"], text=True,
            stdout=subprocess.PIPE, stderr=errors, env=self.env)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertRegex(process.stdout.readline(), r"^listening \S+\n$", self.said(name))
        self.urls[name] = process.stdout.readline().split()[1]
        self.processes[name] = process

    def said(self, name):
        return (self.folder / f"{name}.err").read_text(errors="replace")

    def ctl(self, *arguments):
        done = subprocess.run([BIN / "percsctl", *map(str, arguments)], text=True, cwd=self.folder,
                              capture_output=True, timeout=LIMIT_SECONDS, env=self.env)
        self.assertEqual(0, done.returncode, f"percsctl {arguments}\n{done.stdout}{done.stderr}")
        return done.stdout

    def control(self, *arguments):
        return self.ctl(*arguments, "--controller", self.controller)

    def write(self, name, text):
        (self.folder / name).write_text(text)
        return name

    @staticmethod
    def wait_for(what, condition):
        wait_for(condition, what, LIMIT_SECONDS)

    def ask(self, *arguments):
        """Asks a question; a fabric between two scenarios may put it off, and only so."""
        try:
            self.control(*arguments, "--format", "json")
        except AssertionError as error:
            if "the fabric is being configured" not in str(error):
                raise

    def read_metrics(self, name, url):
        try:
            with urllib.request.urlopen(url, timeout=LIMIT_SECONDS) as answer:
                answer.read()
        except OSError:
            if name in self.urls:
                raise

    def watch(self, stop, asked, errors):
        """Asks everything that does not change the fabric, again and again."""
        while not stop.is_set():
            try:
                for command in (("status",), ("links",), ("counters", "sn0-d3-h7", "--vc"),
                                ("routes", "sn0-d0-h0", "sn0-d3-h7"), ("tree", "list")):
                    self.ask(*command)
                for name, url in list(self.urls.items()):
                    self.read_metrics(name, url)
                asked.append(True)
            except (AssertionError, OSError) as error:
                errors.append(error)
                return

    def test_a_run_that_is_watched_all_the_time_has_the_digest_of_one_process(self):
        scenario = self.write("everything.yaml", EVERYTHING)
        here = json.loads(self.ctl("run", scenario, "--format", "json"))
        # Something is there to be asked about before the watchers come.
        self.control("apply", scenario, "--wait")
        stop, asked, errors = threading.Event(), [], []
        watcher = threading.Thread(target=self.watch, args=(stop, asked, errors))
        watcher.start()
        try:
            runs = 0
            while runs < 2 or (len(asked) < 2 and not errors):
                there = json.loads(self.control("apply", scenario, "--wait", "--format", "json"))
                self.assertEqual(here["digest"], there["digest"])
                self.assertEqual([], there["violations"])
                runs += 1
        finally:
            stop.set()
            watcher.join()
        self.assertEqual([], errors)
        self.end_all()

    def test_a_live_fabric_takes_commands_from_several_sides(self):
        self.control("apply", self.write("live.yaml", LIVE))
        stop, asked, errors = threading.Event(), [], []
        watchers = [threading.Thread(target=self.watch, args=(stop, asked, errors)) for _ in "ab"]
        for watcher in watchers:
            watcher.start()
        try:
            for link in ("sn0-d0-h0/sn0-d1-h0", "sn0-d2-h3/sn0-d2-h5"):
                self.control("fault", "link-down", link)
                self.control("fault", "link-up", link)
            self.control("fault", "link-errors", "sn0-d0-h1/sn0-d1-h1", "--flit-rate", "1e-2")
            self.control("fault", "lanes", "sn0-d0-h2/sn0-d1-h2", "--lost", "2")
            self.control("tree", "create", "some", "--members", "sn0-d0")
            self.wait_for("the tree", lambda: '"ready"' in self.control("tree", "list", "--format",
                                                                        "json"))
            self.control("tree", "delete", "some")
            self.count_together()
            self.lose_and_rejoin(2)
            self.wait_for("watchers", lambda: len(asked) >= 2 or errors)
        finally:
            stop.set()
            for watcher in watchers:
                watcher.join()
        self.assertEqual([], errors)
        self.control("stop", "--wait")
        report = json.loads(self.control("result", "--format", "json"))
        self.assertEqual([], report["violations"])
        self.end_all()

    def count_together(self):
        """Programs at windows of three daemons count in the memory of one of them."""
        def program(*arguments):
            process = subprocess.Popen([BIN / "counter", self.controller, *map(str, arguments)],
                                       text=True, env=self.env, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.addCleanup(process.communicate)
            self.addCleanup(process.kill)
            return process
        owner = program("sn0-d0-h0", 0, "own", 20)
        self.assertEqual("ready\n", owner.stdout.readline())
        adders = [program(f"sn0-d{d}-h1", 0, "add", "sn0-d0-h0", 0, 10) for d in (1, 2)]
        for process in (*adders, owner):
            out, errors = process.communicate(timeout=LIMIT_SECONDS)
            self.assertEqual((0, ""), (process.returncode, errors), out)

    def lose_and_rejoin(self, place):
        name = f"percsd-{place + 1}"
        del self.urls[name]
        lost = self.processes.pop(name)
        lost.kill()
        lost.wait()
        self.wait_for("the loss", lambda: "daemon_lost" in self.control("events"))
        self.start_daemon(place)
        self.wait_for("it to rejoin", lambda: "daemon_rejoined" in self.control("events"))

    def end_all(self):
        for name, process in reversed(self.processes.items()):
            process.terminate()
            self.assertEqual(0, process.wait(LIMIT_SECONDS), f"{name}:\n{self.said(name)}")
        for name in self.processes:
            self.assertNotIn("Sanitizer", self.said(name))
        races = [race for log in self.folder.glob("races.*")
                 for race in tsan_reports.ours(log.read_text(errors="replace"))]
        self.assertEqual([], races, "\n\n".join(races[:3]))


if __name__ == "__main__":
    unittest.main()
