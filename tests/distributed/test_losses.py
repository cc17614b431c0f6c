"""Daemons that are killed or freeze in a run: the others go on, a place is taken again, and the
journal replays.

Method: real processes under traffic that needs the lost hubs; percsd are killed with SIGKILL or
frozen with SIGSTOP, and started again or woken. The replay of the journal, in this process with one
and two threads and over new daemons, has to have the digest of the live run.
"""

import pathlib
import re
import signal
import socket
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from tests.support.fabric import (  # noqa: E402
    BIN, PATIENCE_SECONDS, Fabric, FabricTest, percsctl_json)

# Few tries: messages to a lost hub are given up after 2^tries timeouts, and a fabric that is
# stopped runs until the last one is.
SCENARIO = """
name: losses
seed: 5
topology: {drawers: 2, hubs: 4}
parameters: {detect: 1us, plan: 4us, install: 4us, retransmit_timeout: 10us, retransmit_tries: 3}
workload:
  pattern: {pattern: uniform, load: 0.1, reliable: true}
"""
GATE = """
name: gate
seed: 5
topology: {supernodes: 2, drawers: 1, hubs: 4, d_links_per_pair: 1}
parameters: {detect: 1us, plan: 4us, install: 4us, retransmit_timeout: 10us, retransmit_tries: 3}
workload:
  pattern: {pattern: uniform, load: 0.02, reliable: true}
"""
DEADLINE_SECONDS = 3
FINITE = """
name: finite
seed: 5
topology: {drawers: 2, hubs: 4}
workload:
  all_to_all: {bytes: 64KiB, schedule: spread, reliable: true, payload: verified}
"""


class LossTest(FabricTest):
    def setUp(self):
        super().setUp()
        self.file.write_text(SCENARIO)

    def test_a_run_that_failed_by_loss_says_so(self):
        fabric = self.open_fabric(1)
        fabric.ctl("apply", self.file, "--hold")
        fabric.daemons[0].kill()
        fabric.wait_for_state("failed", "joining")
        done = fabric.ctl("result", check=False)
        self.assertEqual(1, done.returncode, done.stderr)
        self.assertRegex(done.stderr, r"^percsctl result: lost d0 in place 0 \(pid \d+\): its "
                         "process has exited; it was the last daemon with hubs\n$")
        done = fabric.ctl("fault", "create", "cut", "--kind", "link_down", "--link",
                          "sn0-d0-h0:LL0", check=False)
        self.assertRegex(done.stderr, r"^percsctl fault: run 1 has failed: lost d0 ")
        fabric.controller.kill()
        fabric.controller.wait()
        done = fabric.ctl("result", check=False)
        self.assertEqual(4, done.returncode, done.stderr)
        self.assertRegex(done.stderr, "^percsctl result: no controller answers at unix:")

    def test_daemons_that_do_not_reach_each_other_are_named_and_apply_ends(self):
        with socket.socket() as silent:  # accepts connections, and never says a word
            silent.bind(("127.0.0.1", 0))
            silent.listen(64)
            address = f"127.0.0.1:{silent.getsockname()[1]}"
            fabric = Fabric(self.folder / "apart", 2)
            self.addCleanup(fabric.close)
            fabric.start_controller()
            fabric.start_daemon(0)
            fabric.start_daemon(1, "--advertise-link", address)
            fabric.wait_for_state("empty")
            begin = time.monotonic()
            apply = self.start(BIN / "percsctl", "apply", self.file, "--controller",
                               fabric.address)
            apart = (r"run 1 waits for streams between daemons: d0 in place 0 \(pid \d+\) does not "
                     rf"reach d1 in place 1 \(pid \d+\) at {re.escape(address)} \(.+\)")
            fabric.wait_for(lambda: re.search(apart, fabric.status()["waits_for"]), "the names")
            self.assertLess(time.monotonic() - begin, 15)
            self.assertEqual(1, apply.wait(timeout=PATIENCE_SECONDS))
            self.assertLess(time.monotonic() - begin, 40)
            self.assertRegex(fabric.ctl("status").stdout, "error +" + apart)
            log = next(fabric.folder.glob("d0-*.log")).read_text()
            self.assertEqual(1, len(re.findall(r"no stream to d1 in place 1 \(pid \d+\) at "
                                               + re.escape(address), log)), log)

    def wait_for_loss(self, fabric, place):
        fabric.wait_for(lambda: f"d{place} in place {place}"
                        in fabric.ctl("events", check=False).stdout, f"the loss of d{place}")

    def check_replays(self, fabric, digest):
        for threads in (1, 2):
            replayed = percsctl_json("replay", fabric.state, "--threads", threads)
            self.assertEqual(digest, replayed["digest"], f"{threads} threads\n{fabric.logs()}")
            self.assertTrue(replayed["equal"])
        other = self.open_fabric(2)
        replayed = other.json("replay", fabric.state, "--distributed")
        self.assertEqual(digest, replayed["digest"], "over two daemons that are all there")

    def test_the_survivors_go_on_and_the_journal_replays(self):
        fabric = self.open_fabric(4)
        fabric.ctl("apply", self.file, "--hold")
        for place in (2, 0):
            fabric.pass_time(20_000_000)
            fabric.daemons[place].kill()
            self.wait_for_loss(fabric, place)
        fabric.pass_time(40_000_000)
        kinds = [line.split()[1] for line in fabric.ctl("events").stdout.splitlines()
                 if re.match(r" +\d+ ", line)]
        self.assertEqual({"daemon_lost", "reroute"}, set(kinds), "one line tells of all its links")
        self.assertLessEqual(len(kinds), 4)
        fabric.ctl("fault", "create", "cut", "--kind", "link_down", "--link", "sn0-d0-h2:LL0",
                   "--duration", "20us")
        fabric.pass_time(40_000_000)
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
        fabric = self.open_fabric(4)
        for pace in ("max", "100us/s"):
            fabric.ctl("apply", self.file, "--pace", pace)
            fabric.daemons[1].send_signal(signal.SIGSTOP)
            time.sleep(3)  # what is tested is this time
            fabric.daemons[1].send_signal(signal.SIGCONT)
            self.assertEqual(expected, fabric.result()["digest"])
            self.assertEqual([], fabric.result()["lost"])

    def test_a_controller_that_freezes_takes_nobody_for_lost_and_a_daemon_that_does_is(self):
        fabric = self.open_fabric(3, "--loss-deadline", DEADLINE_SECONDS)
        fabric.ctl("apply", self.file, "--hold", "--pace", "20us/s")
        fabric.pass_time(2_000_000)
        fabric.controller.send_signal(signal.SIGSTOP)
        time.sleep(DEADLINE_SECONDS + 1)  # what is tested is this time
        fabric.controller.send_signal(signal.SIGCONT)
        fabric.pass_time(30_000_000 * DEADLINE_SECONDS)  # and then, by the pace, 1.5 of them
        status = fabric.status()
        self.assertEqual([True] * 3, [process["connected"] for process in status["processes"]])
        self.assertNotIn("daemon_lost", fabric.ctl("events").stdout)
        fabric.daemons[1].send_signal(signal.SIGSTOP)
        self.wait_for_loss(fabric, 1)
        fabric.pass_time(2_000_000)
        fabric.daemons[1].kill()
        fabric.ctl("stop")
        result = fabric.result()
        self.assertEqual(["d1 in place 1"], [lost["who"].split(" (")[0] for lost in result["lost"]])
        self.check_replay(fabric, result)

    def refused_at_once(self, fabric, text):
        for command in (("health",), ("counters",), ("links",),
                        ("fault", "link-down", "sn0-d0-h0:LL0"),
                        ("fault", "create", "cut", "--kind", "link_down", "--link",
                         "sn0-d0-h0:LL0")):
            done = fabric.ctl(*command, check=False)
            self.assertNotEqual(0, done.returncode, command)
            self.assertRegex(done.stderr, text)

    def test_while_a_daemon_is_missing_questions_and_commands_say_so_at_once(self):
        fabric = Fabric(self.folder / "tcp", 3, daemon_flags=("--listen", "127.0.0.1:0"))
        self.addCleanup(fabric.close)
        fabric.open()
        fabric.wait_for_state("empty")
        fabric.ctl("apply", self.file, "--hold")
        fabric.pass_time(10_000_000)
        self.assertEqual("", fabric.status()["waits_for"])
        fabric.daemons[1].send_signal(signal.SIGSTOP)
        text = (rf"run 1 waits for d1 in place 1 \(pid {fabric.daemons[1].pid}\), which has not "
                r"answered for \d+\.\d s; without --loss-deadline it is awaited without limit")
        self.refused_at_once(fabric, text)
        status = fabric.status()
        self.assertRegex(status["waits_for"], text)
        self.assertGreater(status["processes"][1]["wall_missing_seconds"], 1)
        self.assertIsNone(status["processes"][1]["wall_lost_in_seconds"])
        self.assertEqual(0, status["processes"][0]["wall_missing_seconds"])
        self.assertRegex(fabric.ctl("status").stdout, "(?m)^waiting +" + text)
        fabric.daemons[1].send_signal(signal.SIGCONT)
        fabric.wait_for(lambda: fabric.status()["waits_for"] == "", "it to be back")
        fabric.pass_time(10_000_000)
        fabric.ctl("health")
        fabric.ctl("fault", "link-down", "sn0-d0-h0:LL0")
        fabric.ctl("stop")
        result = fabric.result()
        self.assertEqual([], result["lost"])
        self.check_replay(fabric, result)  # what was refused was not done

    def test_one_that_is_gone_is_named_with_the_time_of_its_loss(self):
        fabric = Fabric(self.folder / "tcp", 2, daemon_flags=("--listen", "127.0.0.1:0"))
        self.addCleanup(fabric.close)
        fabric.open("--loss-deadline", 20)
        fabric.wait_for_state("empty")
        fabric.ctl("apply", self.file, "--hold")
        fabric.pass_time(10_000_000)
        fabric.daemons[1].kill()
        self.refused_at_once(fabric, r"run 1 waits for d1 in place 1 \(pid \d+\), which has had "
                                     r"no connection for \d+\.\d s; it is lost in \d+\.\d s")
        self.wait_for_loss(fabric, 1)
        fabric.pass_time(10_000_000)
        self.assertFalse(fabric.json("health")["healthy"])
        fabric.ctl("stop")
        self.check_replay(fabric, fabric.result())

    def test_one_at_another_address_waits_until_the_former_one_is_lost(self):
        # Over TCP nobody can tell that a process is gone: in batch only a deadline says so.
        fabric = Fabric(self.folder / "tcp", 2, daemon_flags=("--listen", "127.0.0.1:0"))
        self.addCleanup(fabric.close)
        fabric.open("--loss-deadline", "3")
        fabric.wait_for_state("empty")
        fabric.ctl("apply", self.file, "--hold")
        fabric.pass_time(10_000_000)
        fabric.daemons[1].kill()
        fabric.daemons[1].wait()
        fabric.start_daemon(1)
        fabric.wait_for(lambda: "waiting for a place" in fabric.logs(), "it to wait")
        self.assertNotIn("daemon_lost", fabric.ctl("events").stdout)
        self.wait_for_rejoin(fabric, 2)
        fabric.pass_time(10_000_000)
        fabric.ctl("stop")
        result = fabric.result()
        self.assertEqual(1, len(result["lost"]))
        self.assertEqual(1, len(result["rejoined"]))
        self.check_replay(fabric, result)

    def wait_for_rejoin(self, fabric, incarnation):
        fabric.wait_for(lambda: f"as incarnation {incarnation} at"
                        in fabric.ctl("events", check=False).stdout, "somebody to rejoin")

    def counters(self, fabric, node):
        return fabric.json("counters", node, "--vc")["nodes"][0]

    def test_one_that_is_started_again_has_its_place_within_the_run(self):
        # Hub 0 has the one D link of its supernode: the others of d0 to d1 go through it.
        self.file.write_text(GATE)
        fabric = self.open_fabric(4)
        fabric.ctl("apply", self.file, "--hold")
        for incarnation in (2, 3):
            fabric.pass_time(20_000_000)
            fabric.daemons[0].kill()
            fabric.daemons[0].wait()
            fabric.wait_for(lambda: len(fabric.status()["processes"]) == 3, "the loss")
            fabric.pass_time(20_000_000)
            fabric.start_daemon(0)
            self.wait_for_rejoin(fabric, incarnation)
            fabric.wait_for(lambda: fabric.json("health")["unreachable_pairs"] == 0, "new routes")
        fabric.pass_time(20_000_000)
        gate = self.counters(fabric, "sn0-d0-h0")
        self.assertEqual({"D0", "LL0"}, {"D0", "LL0"} & {vc["port"] for vc in gate["vcs"]}, gate)
        self.assertGreater(gate["packets_delivered"], 0, "sent to it")
        received = gate["packets_delivered"] + gate["drops"]["duplicate"]
        self.assertLessEqual(gate["packets_created"], received, "acknowledgements")
        process = fabric.status()["processes"][0]
        self.assertEqual([0, 2, 3], [process["process"], process["nodes"], process["incarnation"]])
        fabric.ctl("stop")
        result = fabric.result()
        self.assertEqual(8, result["nodes"], "all of them count")
        self.assertEqual([2, 3], [back["incarnation"] for back in result["rejoined"]])
        self.assertEqual([[0, 1]] * 2, [back["nodes"] for back in result["rejoined"]])
        self.assertEqual([], result["violations"])
        self.check_replays(fabric, result["digest"])

    def test_a_spare_takes_the_place_and_two_come_back_at_once(self):
        fabric = self.open_fabric(4)
        fabric.ctl("apply", self.file, "--hold")
        fabric.ctl("fault", "create", "cut", "--kind", "link_down", "--link", "sn0-d0-h2:LR0")
        fabric.ctl("fault", "lanes", "sn0-d1-h0:LR0", "--lost", "2")
        spare = fabric.start("spare", "percsd", "--controller", fabric.address, "--name", "spare",
                             "--spare", *fabric.daemon_flags)
        self.addCleanup(spare.wait)
        self.addCleanup(spare.kill)
        fabric.pass_time(10_000_000)
        log = next(fabric.folder.glob("controller-*.log"))
        fabric.wait_for(lambda: "refused spare" in log.read_text(), "the refusal")
        time.sleep(2)  # of wall time, in which it asks again
        self.assertEqual(1, log.read_text().count("refused spare"), "the reason is the same")
        fabric.daemons[1].kill()
        fabric.daemons[2].kill()
        self.wait_for_rejoin(fabric, 2)
        self.assertIn("spare in place", fabric.ctl("events").stdout)
        for place in (1, 2):
            fabric.start_daemon(place)  # one of them finds its place taken
        fabric.wait_for(lambda: fabric.ctl("events").stdout.count("daemon_rejoined") == 2, "both")
        fabric.pass_time(20_000_000)
        fabric.ctl("stop")
        result = fabric.result()
        self.assertEqual(8, result["nodes"])
        self.assertEqual([], result["violations"])
        self.check_replays(fabric, result["digest"])

    def test_the_controller_dies_while_one_comes_back(self):
        fabric = self.open_fabric(3)
        fabric.ctl("apply", self.file, "--hold")
        fabric.pass_time(5_000_000)
        fabric.daemons[1].kill()
        fabric.daemons[1].wait()
        self.wait_for_loss(fabric, 1)
        for point in ("journalled:1", "saved:3"):
            fabric.controller.kill()
            fabric.controller.wait()
            fabric.start_controller("--kill-at", point)
            if fabric.daemons[1].poll() is not None:
                fabric.start_daemon(1)
            fabric.controller.wait(timeout=PATIENCE_SECONDS)
        fabric.start_controller()
        self.wait_for_rejoin(fabric, 2)
        fabric.pass_time(10_000_000)
        fabric.ctl("stop")
        result = fabric.result()
        self.assertEqual(1, len(result["rejoined"]))
        self.assertEqual([], result["violations"])
        self.check_replays(fabric, result["digest"])

    def test_one_that_wakes_after_the_deadline_is_refused_and_joins_anew(self):
        fabric = self.open_fabric(3, "--loss-deadline", DEADLINE_SECONDS)
        fabric.ctl("apply", self.file, "--hold")
        fabric.pass_time(5_000_000)
        fabric.daemons[1].send_signal(signal.SIGSTOP)
        self.wait_for_loss(fabric, 1)
        fabric.pass_time(5_000_000)
        fabric.daemons[1].send_signal(signal.SIGCONT)
        self.wait_for_rejoin(fabric, 2)
        self.assertIn("was declared lost; join again", fabric.logs())
        self.assertIsNone(fabric.daemons[1].poll(), "it is the same process")
        self.assertEqual(3, len(fabric.status()["processes"]), "those that waited are not lost")
        fabric.pass_time(5_000_000)
        fabric.ctl("stop")
        result = fabric.result()
        self.assertEqual(1, len(result["lost"]))
        self.assertEqual(1, len(result["rejoined"]))
        self.check_replays(fabric, result["digest"])
        self.file.write_text(FINITE)
        fabric.ctl("apply", self.file)
        self.assertEqual(percsctl_json("run", self.file)["digest"], fabric.result()["digest"])

    def test_a_loss_and_the_end_of_the_controller_together(self):
        fabric = self.open_fabric(3)
        fabric.ctl("apply", self.file, "--hold")
        fabric.pass_time(5_000_000)
        fabric.daemons[2].kill()
        fabric.controller.kill()
        fabric.controller.wait()
        fabric.start_controller()
        self.wait_for_loss(fabric, 2)
        fabric.pass_time(10_000_000)
        fabric.controller.kill()
        fabric.controller.wait()
        fabric.start_controller()
        fabric.pass_time(10_000_000)
        fabric.ctl("stop")
        result = fabric.result()
        self.assertEqual(1, len(result["lost"]))
        self.check_replays(fabric, result["digest"])


if __name__ == "__main__":
    unittest.main()
