"""Daemons that are killed or freeze in a run: the others go on, and the journal replays.

Method: real processes under traffic that needs the lost hubs; percsd are killed with SIGKILL or
frozen with SIGSTOP. The replay of the journal, in this process with one and two threads and over
new daemons, has to have the digest of the live run.
"""

import json
import pathlib
import shutil
import signal
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from tests.support.fabric import Fabric, percsctl, percsctl_json  # noqa: E402

SCENARIO = """
name: losses
seed: 5
topology: {drawers: 2, hubs: 4}
parameters: {detect: 1us, plan: 4us, install: 4us, retransmit_timeout: 10us}
workload:
  pattern: {pattern: uniform, load: 0.1, reliable: true}
"""
FINITE = """
name: finite
seed: 5
topology: {drawers: 2, hubs: 4}
workload:
  all_to_all: {bytes: 64KiB, schedule: spread, reliable: true, payload: verified}
"""


class LossTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="percs-loss-", dir="/tmp"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.file = self.folder / "losses.yaml"
        self.file.write_text(SCENARIO)
        self.fabrics = 0

    def fabric(self, daemons, *flags):
        self.fabrics += 1
        fabric = Fabric(self.folder / f"f{self.fabrics}", daemons)
        self.addCleanup(fabric.close)
        fabric.open(*flags)
        fabric.wait_for_state("empty")
        return fabric

    def pass_time(self, fabric, by):
        fabric.wait_for(lambda: fabric.status() is not None, "the controller")
        start = fabric.status()["virtual_ps"]
        fabric.wait_for(lambda: fabric.status()["virtual_ps"] > start + by, f"{by} ps to pass")

    def wait_for_loss(self, fabric, place):
        fabric.wait_for(lambda: f"d{place} in place {place}"
                        in fabric.ctl("events", check=False).stdout, f"the loss of d{place}")

    def check_replays(self, fabric, digest):
        for threads in (1, 2):
            replayed = percsctl_json("replay", fabric.state, "--threads", threads)
            self.assertEqual(digest, replayed["digest"], f"{threads} threads\n{fabric.logs()}")
            self.assertTrue(replayed["equal"])
        other = self.fabric(2)
        replayed = other.json("replay", fabric.state, "--distributed")
        self.assertEqual(digest, replayed["digest"], "over two daemons that are all there")

    def test_the_survivors_go_on_and_the_journal_replays(self):
        fabric = self.fabric(4)
        fabric.ctl("apply", self.file, "--hold")
        for place in (2, 0):
            self.pass_time(fabric, 20_000_000)
            fabric.daemons[place].kill()
            self.wait_for_loss(fabric, place)
        fabric.ctl("fault", "create", "cut", "--kind", "link_down", "--link", "sn0-d0-h2:LL0",
                   "--duration", "20us")
        self.pass_time(fabric, 40_000_000)
        self.assertEqual(2, len(fabric.status()["processes"]))
        health = fabric.json("health")
        self.assertFalse(health["healthy"])
        self.assertGreater(health["reroutes_count"], 0)
        fabric.ctl("stop")
        result = fabric.result()
        self.assertEqual(4, result["nodes"], "of two daemons")
        self.assertEqual(["d2 in place 2", "d0 in place 0"],
                         [lost["who"].split(" (")[0] for lost in result["lost"]])
        self.assertEqual([], result["violations"])
        self.check_replays(fabric, result["digest"])

    def test_a_freeze_changes_nothing_in_batch_and_three_seconds_nothing_in_live(self):
        self.file.write_text(FINITE)
        expected = percsctl_json("run", self.file)["digest"]
        fabric = self.fabric(4)
        for pace in ("max", "100us/s"):
            fabric.ctl("apply", self.file, "--pace", pace)
            fabric.daemons[1].send_signal(signal.SIGSTOP)
            time.sleep(3)  # what is tested is this time
            fabric.daemons[1].send_signal(signal.SIGCONT)
            self.assertEqual(expected, fabric.result()["digest"])
            self.assertEqual([], fabric.result()["lost"])

    def test_one_that_wakes_after_the_deadline_is_refused(self):
        fabric = self.fabric(3, "--loss-deadline", "0.7")
        fabric.ctl("apply", self.file, "--hold")
        self.pass_time(fabric, 5_000_000)
        fabric.daemons[1].send_signal(signal.SIGSTOP)
        self.wait_for_loss(fabric, 1)
        self.pass_time(fabric, 5_000_000)
        fabric.daemons[1].send_signal(signal.SIGCONT)
        self.assertEqual(1, fabric.daemons[1].wait(timeout=30), "it ends")
        self.assertIn("join first", fabric.logs())
        self.assertEqual(2, len(fabric.status()["processes"]), "those that waited are not lost")
        fabric.ctl("stop")
        result = fabric.result()
        self.assertEqual(1, len(result["lost"]))
        self.check_replays(fabric, result["digest"])
        # The place is free: a new one takes part in the next run.
        fabric.start_daemon(1)
        self.file.write_text(FINITE)
        fabric.wait_for(lambda: len(fabric.status()["processes"]) == 3, "the new daemon")
        fabric.ctl("apply", self.file)
        self.assertEqual(percsctl_json("run", self.file)["digest"], fabric.result()["digest"])

    def test_a_loss_and_the_end_of_the_controller_together(self):
        fabric = self.fabric(3)
        fabric.ctl("apply", self.file, "--hold")
        self.pass_time(fabric, 5_000_000)
        fabric.daemons[2].kill()
        fabric.controller.kill()
        fabric.controller.wait()
        fabric.start_controller()
        self.wait_for_loss(fabric, 2)
        self.pass_time(fabric, 10_000_000)
        fabric.controller.kill()
        fabric.controller.wait()
        fabric.start_controller()
        self.pass_time(fabric, 10_000_000)
        fabric.ctl("stop")
        result = fabric.result()
        self.assertEqual(1, len(result["lost"]))
        self.check_replays(fabric, result["digest"])


if __name__ == "__main__":
    unittest.main()
