"""A controller that dies and is started again: nothing is lost, and nobody can tell.

Method: real processes; percs-controller kills itself with SIGKILL at points drawn from a seed (a
command is journalled but nothing granted; the state is saved but nothing sent; network management
made a step, with a prepare on its way or its commit; everything was sent), and is started again on
the same state directory. The digest has to be that of the same scenario, or of the same journal,
in one process.
"""

import json
import os
import pathlib
import random
import re
import signal
import sqlite3
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from tests.support.fabric import (  # noqa: E402
    BIN, PATIENCE_SECONDS, FabricTest, percsctl, percsctl_json)

SEED = int(os.environ.get("PERCS_SEED", "1"))
POINTS = 20
DAEMONS = 3

# Reroutes while messages are on their way, a fault that repeats, errors that are replayed.
SCENARIO = """
name: recovery
seed: 3
topology: {drawers: 2, hubs: 3}
parameters: {detect: 1us, plan: 4us, install: 4us, retransmit_timeout: 20us}
workload:
  all_to_all: {bytes: 64KiB, schedule: spread, reliable: true, payload: verified}
faults:
  - {id: cut, at: 3us, link_down: sn0-d0-h0/sn0-d1-h0}
  - {id: repair, at: 30us, link_up: sn0-d0-h0/sn0-d1-h0}
  - id: flap
    at: 2us
    inject: {kind: flap, select: {in: sn0-d1}, mode: one, period: 8us, duty: 0.4, repeats: 4}
"""


class RecoveryTest(FabricTest):
    def setUp(self):
        super().setUp()
        self.file.write_text(SCENARIO)
        run = percsctl_json("run", self.file)
        self.expected, self.windows = run["digest"], run["windows"]
        self.random = random.Random(SEED)

    def await_killed(self, fabric):
        fabric.controller.wait(timeout=PATIENCE_SECONDS)
        self.assertEqual(-signal.SIGKILL, fabric.controller.returncode, fabric.logs())

    def test_killed_at_seeded_points_the_digest_is_that_of_the_undisturbed_run(self):
        names = ("saved", "step", "granted")
        for number in range(POINTS):
            name = names[number % len(names)]
            count = self.random.randint(*((2, 12) if name == "step"
                                           else (20, self.windows * 3 // 4)))
            with self.subTest(point=f"{name}:{count}", seed=SEED):
                fabric = self.open_fabric(DAEMONS, "--kill-at", f"{name}:{count}")
                fabric.ctl("apply", self.file, check=False)
                self.await_killed(fabric)
                fabric.start_controller()
                self.assertEqual(self.expected, fabric.result()["digest"], fabric.logs())
                fabric.close()

    def test_killed_between_journal_and_grant_the_command_counts(self):
        fabric = self.open_fabric(DAEMONS, "--kill-at", "journalled:1")
        fabric.ctl("apply", self.file, "--hold")
        fabric.ctl("fault", "create", "mine", "--kind", "link_down", "--link", "sn0-d0-h1:LR0",
                   "--duration", "20us", check=False)
        self.await_killed(fabric)
        fabric.start_controller()
        fabric.wait_for_state("running", "idle")
        faults = fabric.json("fault", "list")
        self.assertIn("mine", json.dumps(faults), "it was in the journal, so it happened")
        fabric.ctl("stop")
        digest = fabric.result()["digest"]
        replayed = json.loads(percsctl("replay", fabric.state, "--format", "json").stdout)
        self.assertEqual(digest, replayed["digest"])
        self.assertTrue(replayed["equal"])

    def test_what_was_acknowledged_is_known_before_it_takes_effect_again(self):
        fabric = self.open_fabric(DAEMONS, "--kill-at", "journalled:1")
        fabric.ctl("apply", self.file, "--hold")
        fabric.ctl("fault", "create", "mine", "--kind", "link_down", "--link", "sn0-d0-h1:LR0",
                   check=False)
        self.await_killed(fabric)
        # The commit is older than the journal, and one daemon keeps virtual time from getting to
        # the command.
        fabric.daemons[1].send_signal(signal.SIGSTOP)
        fabric.start_controller()
        fabric.wait_for(lambda: fabric.status() is not None, "the next one")
        for question in (("fault", "list"), ("fault", "get", "mine")):
            with self.subTest(question=question):
                done = fabric.ctl(*question, check=False)
                if done.returncode == 0:
                    self.assertIn("mine", done.stdout)
                else:
                    self.assertIn("run 1 waits for d1", done.stderr)
        fabric.daemons[1].send_signal(signal.SIGCONT)
        fabric.wait_for(lambda: fabric.ctl("fault", "list", check=False).returncode == 0, "faults")
        self.assertIn("mine", fabric.ctl("fault", "list").stdout)
        # It may be known before all daemons are back, and what changes something waits for them.
        fabric.wait_for(lambda: all(p["connected"] for p in fabric.status()["processes"]),
                        "the one that stood still")
        fabric.ctl("fault", "delete", "mine")
        fabric.ctl("stop")
        self.check_replay(fabric, fabric.result())

    def test_between_prepare_and_commit_while_paused_and_results_stay(self):
        # All faults 20 us later: it takes a while until it is paused.
        later = re.sub(r"at: (\d+)us", lambda at: f"at: {int(at[1]) + 20}us", SCENARIO)
        self.file.write_text(later)
        self.expected = percsctl_json("run", self.file)["digest"]
        fabric = self.open_fabric(DAEMONS)
        fabric.ctl("apply", self.file, "--pace", "4us/s")
        fabric.ctl("pause")
        # The flap alerts soon after 22 us: planned 5 us later, prepared 2 us after that, committed
        # 2 us later still.
        at = fabric.status()["virtual_ps"]
        fabric.ctl("step", f"{29_500_000 - at}ps")
        for _ in range(2):
            fabric.wait_for_state("paused")
            self.assertIn("alert", fabric.ctl("events").stdout)
            fabric.controller.kill()
            fabric.controller.wait()
            fabric.start_controller()
        fabric.wait_for_state("paused")
        fabric.wait_for(lambda: fabric.status()["virtual_ps"] == 29_500_000, "the same time")
        fabric.ctl("resume")
        self.assertEqual(self.expected, fabric.result()["digest"])
        fabric.controller.kill()
        fabric.controller.wait()
        fabric.start_controller()
        self.assertEqual(self.expected, fabric.result()["digest"], "results are kept, too")

    def stop_controller(self, fabric):
        fabric.controller.send_signal(signal.SIGTERM)
        self.assertEqual(0, fabric.controller.wait(timeout=PATIENCE_SECONDS), fabric.logs())
        self.assertEqual([None] * DAEMONS, [daemon.poll() for daemon in fabric.daemons],
                         "they wait for the next controller")

    def test_stopped_in_good_order_the_fabric_waits_for_the_next_controller(self):
        fabric = self.open_fabric(DAEMONS)
        fabric.ctl("apply", self.file, "--pace", "4us/s")
        start = 0
        for _ in range(3):
            fabric.wait_for(lambda: (fabric.status() or {}).get("virtual_ps", 0) > start,
                            "time to pass")
            self.stop_controller(fabric)
            fabric.start_controller()
            fabric.wait_for(lambda: fabric.status() is not None, "the next one")
            start = fabric.status()["virtual_ps"] + 1_000_000
        result = fabric.result()
        self.assertEqual((self.expected, []), (result["digest"], result["lost"]))
        self.check_replay(fabric, result)
        # Nothing runs: results stay, and the same daemons take the next scenario.
        pids = [daemon.pid for daemon in fabric.daemons]
        self.stop_controller(fabric)
        fabric.start_controller()
        self.assertEqual(self.expected, fabric.result()["digest"])
        fabric.ctl("apply", self.file)
        self.assertEqual(self.expected, fabric.result()["digest"])
        self.assertEqual(pids, [p["pid"] for p in fabric.status()["processes"]])
        fabric.ctl("down")
        self.assertEqual([0] * (DAEMONS + 1), [process.wait(timeout=PATIENCE_SECONDS) for process in
                                               (fabric.controller, *fabric.daemons)])

    def test_who_waits_for_an_answer_is_told_that_the_controller_is_ending(self):
        fabric = self.open_fabric(DAEMONS)
        fabric.ctl("apply", self.file, "--hold")
        fabric.wait_for_state("idle")
        fabric.daemons[1].send_signal(signal.SIGSTOP)
        health = self.start(BIN / "percsctl", "health", "--controller", fabric.address)
        fabric.wait_for(lambda: "awaited without limit" in fabric.status()["waits_for"]
                        or health.poll() is not None, "the question")
        self.stop_controller(fabric)
        health.communicate(timeout=PATIENCE_SECONDS)
        self.assertNotEqual(0, health.returncode)
        fabric.daemons[1].send_signal(signal.SIGCONT)
        fabric.start_controller()
        fabric.wait_for_state("idle")
        fabric.ctl("health")
        fabric.ctl("stop")
        self.check_replay(fabric, fabric.result())

    def test_what_is_damaged_newer_or_of_another_fabric_is_refused(self):
        fabric = self.open_fabric(DAEMONS, "--kill-at", f"saved:{self.windows // 2}")
        fabric.ctl("apply", self.file, check=False)
        self.await_killed(fabric)
        database = fabric.state / "state.db"
        kept = {path: path.read_bytes() for path in fabric.state.glob("state.db*")}

        def refused(text):
            fabric.start_controller()
            self.assertEqual(1, fabric.controller.wait(timeout=PATIENCE_SECONDS))
            log = max(fabric.folder.glob("controller-*.log"),
                      key=lambda file: int(file.stem.split("-")[1]))
            self.assertRegex(log.read_text(), text)
            for path in fabric.state.glob("state.db*"):
                path.unlink()
            for path, data in kept.items():
                path.write_bytes(data)

        with sqlite3.connect(database) as connection:
            connection.execute("UPDATE meta SET value = '99' WHERE key = 'format'")
        connection.close()
        refused("state.db has format 99, and this software reads formats up to 5")
        with sqlite3.connect(database) as connection:
            connection.execute("UPDATE meta SET value = '1' WHERE key = 'model'")
        connection.close()
        refused("run 1 is in progress, started by model 1; this software has model")
        with sqlite3.connect(database) as connection:
            connection.execute("DELETE FROM step WHERE number = 0")
        connection.close()
        refused("state.db: reading a step that is not there: database disk image is malformed")
        for path in kept:
            path.unlink()
        database.write_bytes(b"this is no database at all" * 100)
        refused("state.db: .*not a database; move it away")
        fabric.places += 1
        refused("belongs to a fabric of 3 daemons, but --daemons is 4")
        fabric.places -= 1
        fabric.start_controller()
        self.assertEqual(self.expected, fabric.result()["digest"], "what was not damaged goes on")


if __name__ == "__main__":
    unittest.main()
