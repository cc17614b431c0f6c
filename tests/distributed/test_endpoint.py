"""The example programs as processes of their own, each at another percsd, and what a kill leaves.

Method: a controller and two percsd as processes; ping_pong and counter attach with the client
library; what they print is compared with what the machine has to give, and the journal is replayed.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from tests.support.fabric import BIN, PATIENCE_SECONDS, Fabric, percsctl_json  # noqa: E402

SCENARIO = ROOT / "deploy" / "scenarios" / "two-windows.yaml"
HUBS = ("sn0-d0-h0", "sn0-d1-h0")  # each in a percsd of its own


class EndpointTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="percs-endpoint-", dir="/tmp"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.fabric = Fabric(self.folder / "f", 2)
        self.addCleanup(self.fabric.close)
        self.fabric.open()
        self.fabric.wait_for_state("empty")

    def start(self, program, *arguments):
        process = subprocess.Popen(
            [BIN / program, self.fabric.address, *map(str, arguments)], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def output(self, process, code=0):
        out, err = process.communicate(timeout=PATIENCE_SECONDS * 2)
        self.assertEqual(code, process.returncode, f"{out}{err}\n{self.fabric.logs()}")
        return out + err

    def check_replay(self, result):
        replayed = percsctl_json("replay", self.fabric.state)
        self.assertEqual(result["digest"], replayed["digest"], self.fabric.logs())

    def ping_pong(self):
        self.fabric.ctl("apply", SCENARIO, "--wait-endpoints", 2)
        serve = self.start("ping_pong", HUBS[0], 0, HUBS[1], 0, "serve", 30)
        self.fabric.wait_for(lambda: self.fabric.status()["programs"] == 1, "the first program")
        status = self.fabric.status()
        self.assertEqual((0, 1), (status["virtual_ps"], status["programs_awaited"]))
        back = self.start("ping_pong", HUBS[1], 0, HUBS[0], 0, "return")
        printed = self.output(serve)
        self.output(back)
        result = self.fabric.result()
        self.check_replay(result)
        return printed, result

    def test_ping_pong_takes_virtual_time_alone_and_the_run_ends_with_the_programs(self):
        printed, result = self.ping_pong()
        found = re.match(r"30 round trips: least ([\d.]+)us, mean ([\d.]+)us", printed)
        self.assertTrue(found, printed)
        # Twice issue, LR link and receive, a few hundred nanoseconds each, and windows in between.
        self.assertGreater(float(found[1]), 1)
        self.assertLess(float(found[2]), 10)
        self.assertEqual([], result["violations"])
        again, second = self.ping_pong()
        self.assertEqual(printed, again, "exclusive programs have one result")
        self.assertEqual(result["packets_delivered"], second["packets_delivered"])

    def owner(self, end):
        process = self.start("counter", HUBS[0], 0, "own", end)
        self.assertEqual("ready\n", process.stdout.readline())
        return process

    def test_a_counter_gives_every_number_once(self):
        self.fabric.ctl("apply", SCENARIO, "--hold")
        owner = self.owner(300)
        adders = [self.start("counter", HUBS[1], window, "add", HUBS[0], 0, 100)
                  for window in (0, 1, 2)]
        last = [int(re.search(r"the last (\d+)", self.output(adder))[1]) for adder in adders]
        self.assertEqual("counted to 300\n", self.output(owner))
        self.assertEqual(299, max(last), "the last number of all")
        self.assertEqual(3, len(set(last)))
        self.fabric.ctl("stop")
        self.check_replay(self.fabric.result())

    def test_a_killed_program_leaves_the_others_with_an_error_and_the_fabric_running(self):
        self.fabric.ctl("apply", SCENARIO, "--hold")
        owner = self.owner(1_000_000_000)
        adder = self.start("counter", HUBS[1], 0, "add", HUBS[0], 0, 1_000_000_000)
        self.fabric.wait_for(lambda: self.fabric.status()["packets_delivered"] > 50, "adds")
        owner.kill()
        told = self.output(adder, code=1)
        self.assertIn("remote_window_closed", told)
        self.assertIn("its program is not there, or gone", told)
        self.assertIn(self.fabric.status()["state"], ("running", "idle"))
        self.fabric.wait_for(lambda: self.fabric.status()["programs"] == 0, "the windows to go")
        new_owner = self.owner(10)
        self.output(self.start("counter", HUBS[1], 0, "add", HUBS[0], 0, 10))
        self.output(new_owner)
        self.fabric.ctl("stop")
        self.check_replay(self.fabric.result())

    def test_a_killed_percsd_is_named_to_its_programs(self):
        self.fabric.ctl("apply", SCENARIO, "--hold")
        owner = self.owner(1_000_000_000)
        began = time.monotonic()
        self.fabric.daemons[0].kill()
        told = self.output(owner, code=1)
        self.assertIn("UNAVAILABLE", told)
        self.assertIn(HUBS[0], told)
        self.assertLess(time.monotonic() - began, PATIENCE_SECONDS)
        self.fabric.wait_for(lambda: "in place 0" in self.fabric.ctl("events", check=False).stdout,
                             "the loss")

    def test_a_controller_that_dies_costs_programs_nothing(self):
        self.fabric.ctl("apply", SCENARIO, "--hold")
        owner = self.owner(2_000)
        adder = self.start("counter", HUBS[1], 0, "add", HUBS[0], 0, 2_000)
        self.fabric.wait_for(lambda: self.fabric.status()["packets_delivered"] > 50, "adds")
        self.fabric.controller.kill()
        self.fabric.controller.wait()
        self.fabric.start_controller()
        self.assertIn("2000 numbers, the last 1999", self.output(adder))
        self.assertEqual("counted to 2000\n", self.output(owner))
        self.fabric.ctl("stop")
        self.check_replay(self.fabric.result())


if __name__ == "__main__":
    unittest.main()
