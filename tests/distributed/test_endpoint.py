"""The example programs as processes of their own, each at another percsd, and what a kill leaves.

Method: a controller and two percsd as processes; ping_pong and counter attach with the client
library; what they print is compared with what the machine has to give, and the journal is replayed.
"""

import pathlib
import re
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from tests.support.fabric import BIN, PATIENCE_SECONDS, FabricTest  # noqa: E402

SCENARIO = ROOT / "deploy" / "scenarios" / "two-windows.yaml"
HUBS = ("sn0-d0-h0", "sn0-d1-h0")  # each in a percsd of its own


class EndpointTest(FabricTest):
    def setUp(self):
        super().setUp()
        self.fabric = self.open_fabric(2)

    def program(self, name, *arguments):
        return self.start(BIN / name, self.fabric.address, *arguments)

    def output(self, process, code=0):
        out, err = process.communicate(timeout=PATIENCE_SECONDS * 2)
        self.assertEqual(code, process.returncode, f"{out}{err}\n{self.fabric.logs()}")
        return out + err

    def ping_pong(self, *flags):
        self.fabric.ctl("apply", SCENARIO, "--wait-endpoints", 2, *flags)
        serve = self.program("ping_pong", HUBS[0], 0, HUBS[1], 0, "serve", 30)
        self.fabric.wait_for(lambda: self.fabric.status()["programs"] == 1, "the first program")
        status = self.fabric.status()
        self.assertEqual((0, 1), (status["virtual_ps"], status["programs_awaited"]))
        back = self.program("ping_pong", HUBS[1], 0, HUBS[0], 0, "return")
        printed = self.output(serve)
        self.output(back)
        result = self.fabric.result()
        self.check_replay(self.fabric, result)
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

    def test_exclusive_programs_hold_a_paced_run_and_have_the_result_of_an_unpaced_one(self):
        printed, result = self.ping_pong()
        began = time.monotonic()
        paced, live = self.ping_pong("--pace", "100us/s")
        self.assertEqual(printed, paced)
        self.assertEqual(result["packets_delivered"], live["packets_delivered"])
        # Virtual time is never ahead of its pace, however fast the programs are.
        self.assertGreater((time.monotonic() - began) * 100e6, live["virtual_ps"])

    def owner(self, end):
        process = self.program("counter", HUBS[0], 0, "own", end)
        self.assertEqual("ready\n", process.stdout.readline())
        return process

    def test_a_counter_gives_every_number_once(self):
        self.fabric.ctl("apply", SCENARIO, "--hold")
        owner = self.owner(300)
        adders = [self.program("counter", HUBS[1], window, "add", HUBS[0], 0, 100)
                  for window in (0, 1, 2)]
        last = [int(re.search(r"the last (\d+)", self.output(adder))[1]) for adder in adders]
        self.assertEqual("counted to 300\n", self.output(owner))
        self.assertEqual(299, max(last), "the last number of all")
        self.assertEqual(3, len(set(last)))
        self.fabric.ctl("stop")
        self.check_replay(self.fabric, self.fabric.result())

    def test_a_killed_program_leaves_the_others_with_an_error_and_the_fabric_running(self):
        self.fabric.ctl("apply", SCENARIO, "--hold")
        owner = self.owner(1_000_000_000)
        adder = self.program("counter", HUBS[1], 0, "add", HUBS[0], 0, 1_000_000_000)
        self.fabric.wait_for(lambda: self.fabric.status()["packets_delivered"] > 50, "adds")
        owner.kill()
        told = self.output(adder, code=1)
        self.assertIn("remote_window_closed", told)
        self.assertIn("its program has not started, or has ended", told)
        self.assertIn(self.fabric.status()["state"], ("running", "idle"))
        self.fabric.wait_for(lambda: self.fabric.status()["programs"] == 0, "the windows to go")
        new_owner = self.owner(10)
        self.output(self.program("counter", HUBS[1], 0, "add", HUBS[0], 0, 10))
        self.output(new_owner)
        self.fabric.ctl("stop")
        self.check_replay(self.fabric, self.fabric.result())

    def test_a_killed_percsd_is_named_to_its_programs(self):
        self.fabric.ctl("apply", SCENARIO, "--hold")
        owner = self.owner(1_000_000_000)
        self.fabric.daemons[0].kill()
        told = self.output(owner, code=1)
        self.assertIn("UNAVAILABLE", told)
        self.assertIn(HUBS[0], told)
        self.fabric.wait_for(lambda: "in place 0" in self.fabric.ctl("events", check=False).stdout,
                             "the loss")

    def test_a_percsd_that_came_back_has_windows_for_programs(self):
        self.fabric.ctl("apply", SCENARIO, "--hold")
        self.fabric.daemons[0].kill()
        self.fabric.daemons[0].wait()
        self.fabric.wait_for(lambda: "in place 0" in self.fabric.ctl("events", check=False).stdout,
                             "the loss")
        self.fabric.start_daemon(0)
        self.fabric.wait_for(lambda: "rejoined" in self.fabric.ctl("events", check=False).stdout,
                             "the next incarnation")
        owner = self.owner(200)
        adder = self.program("counter", HUBS[1], 0, "add", HUBS[0], 0, 200)
        self.assertIn("200 numbers, the last 199", self.output(adder))
        self.assertEqual("counted to 200\n", self.output(owner))
        self.fabric.ctl("stop")
        self.check_replay(self.fabric, self.fabric.result())

    def test_a_controller_that_dies_costs_programs_nothing(self):
        self.fabric.ctl("apply", SCENARIO, "--hold")
        owner = self.owner(2_000)
        adder = self.program("counter", HUBS[1], 0, "add", HUBS[0], 0, 2_000)
        self.fabric.wait_for(lambda: self.fabric.status()["packets_delivered"] > 50, "adds")
        self.fabric.controller.kill()
        self.fabric.controller.wait()
        self.fabric.start_controller()
        self.assertIn("2000 numbers, the last 1999", self.output(adder))
        self.assertEqual("counted to 2000\n", self.output(owner))
        self.fabric.ctl("stop")
        self.check_replay(self.fabric, self.fabric.result())


if __name__ == "__main__":
    unittest.main()
