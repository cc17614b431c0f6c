"""Cables that are swapped by command between daemons that share no link, and what else may happen
meanwhile.

Method: real processes of one hub each, under traffic over D links; a fault of kind miswired is
created live, so that two daemons need a stream which they did not have. Daemons and the controller
are killed while the cables are swapped, and started again. The journal's replay, in one process
and over two daemons, has to have the digest of the live run.
"""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from tests.support.fabric import FabricTest  # noqa: E402

HUBS = 6  # a daemon each; h0 and h1 of a supernode share a link, and D links join supernodes
SCENARIO = """
name: cables
seed: 11
topology: {supernodes: 3, drawers: 1, hubs: 2, d_links_per_pair: 2}
parameters: {detect: 1us, plan: 4us, install: 4us, retransmit_timeout: 10us}
workload:
  pattern: {pattern: uniform, load: 0.1, reliable: true}
service: {probe_rounds: 200, probe_period: 20us}
"""


class CablesTest(FabricTest):
    def setUp(self):
        super().setUp()
        self.file.write_text(SCENARIO)

    def swap(self, fabric, name):
        fabric.ctl("fault", "create", name, "--kind", "miswired", "--link", "sn0-d0-h0:D0",
                   "--with", "sn0-d0-h1:D0")
        fabric.pass_time(20_000_000)

    def finish(self, fabric):
        fabric.ctl("stop")
        result = fabric.result()
        self.assertEqual([], result["violations"])
        self.check_replay(fabric, result)
        other = self.open_fabric(2)
        replayed = other.json("replay", fabric.state, "--distributed")
        self.assertEqual(result["digest"], replayed["digest"], "over two daemons")
        return result

    def test_a_cable_joins_two_daemons_that_had_no_stream(self):
        fabric = self.open_fabric(HUBS)
        fabric.ctl("apply", self.file, "--hold")
        fabric.pass_time(10_000_000)
        for number in (1, 2):
            self.swap(fabric, f"swap-{number}")
            fabric.wait_for(lambda: fabric.ctl("events").stdout.count("are swapped") >= number,
                            "probes to find it")
            fabric.ctl("fault", "delete", f"swap-{number}")
            fabric.pass_time(20_000_000)
        for place in range(HUBS):
            fabric.ctl("process", "break", f"d{place}")
        self.swap(fabric, "swap-3")
        self.finish(fabric)

    def test_a_daemon_is_lost_while_its_cable_is_swapped_and_comes_back(self):
        fabric = self.open_fabric(HUBS)
        fabric.ctl("apply", self.file, "--hold")
        fabric.pass_time(10_000_000)
        for incarnation in (2, 3):
            self.swap(fabric, f"swap-{incarnation}")
            fabric.daemons[0].kill()
            fabric.daemons[0].wait()
            fabric.wait_for(lambda: len(fabric.status()["processes"]) == HUBS - 1, "the loss")
            fabric.pass_time(20_000_000)
            fabric.start_daemon(0)
            fabric.wait_for(lambda: f"as incarnation {incarnation} at"
                            in fabric.ctl("events", check=False).stdout, "it to rejoin")
            fabric.pass_time(10_000_000)
        self.swap(fabric, "swap-4")
        result = self.finish(fabric)
        self.assertEqual([2, 3], [back["incarnation"] for back in result["rejoined"]])

    def test_the_controller_dies_while_cables_are_swapped(self):
        fabric = self.open_fabric(HUBS)
        fabric.ctl("apply", self.file, "--hold")
        fabric.pass_time(10_000_000)
        for number in (1, 2):
            self.swap(fabric, f"swap-{number}")
            fabric.controller.kill()
            fabric.controller.wait()
            fabric.start_controller()
            fabric.pass_time(10_000_000)
            fabric.ctl("fault", "delete", f"swap-{number}")
            fabric.pass_time(10_000_000)
        self.swap(fabric, "swap-3")
        fabric.controller.kill()
        fabric.daemons[0].kill()
        fabric.controller.wait()
        fabric.start_controller()
        fabric.wait_for(lambda: fabric.status() is not None
                        and len(fabric.status()["processes"]) == HUBS - 1, "the loss")
        fabric.pass_time(10_000_000)
        self.finish(fabric)


if __name__ == "__main__":
    unittest.main()
