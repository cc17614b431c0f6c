"""percsctl fault on a live fabric: what is by the wall clock, and what lasts as long as a program.

Method: real binaries; a fabric of two daemons under paced traffic that does not end. Programs that
a fault lasts for ask about it themselves. Whatever was deleted by the wall clock is in the journal,
whose replay has to have the digest of the live run.
"""

import json
import os
import signal
import subprocess
import time
import unittest

from test_cli import (BAD_INPUT, BIN, ENDLESS, FAILED, INTERRUPTED, LIMIT_SECONDS, SLOWER, USAGE,
                      CliTest)

KEPT = 4096  # events of a run
FLAPPING = """\
name: flapping
topology: {supernodes: 1, drawers: 2, hubs: 2}
faults:
  - {id: flap, at: 1us, inject: {kind: flap, period: 4us, repeats: 400}}
"""
CUT = ("--kind", "link_down", "--link", "sn0-d0-h0:LL0")
LEASE_SECONDS = 4 * SLOWER  # longer than a command takes on a busy machine


class FaultCommandsTest(CliTest):
    def setUp(self):
        super().setUp()
        self.env["PATH"] = f"{BIN}:{os.environ['PATH']}"
        self.good("up", "--daemons", 2)
        self.good("apply", self.write("endless.yaml", ENDLESS))
        self.wait_for("running", lambda: self.good_json("status")["state"] == "running")

    def ids(self):
        return [fault["id"] for fault in self.good_json("fault", "list")["faults"]]

    def during(self, *command, kind=CUT):
        return self.ctl("fault", "create", "cut", *kind, "--", *command)

    def check_replay(self):
        self.good("stop", "--wait")
        replayed = self.good_json("replay", self.folder / "state" / "percs" / "default")
        self.assertTrue(replayed["equal"], replayed)

    def test_stop_and_wait_on_a_paused_fabric_answers_at_once(self):
        self.good("pause")
        done = self.ctl("stop", "--wait")
        self.assertEqual(FAILED, done.returncode, done.stdout)
        self.assertRegex(done.stderr, r"the workload is stopped, but virtual time is paused at \S+")
        self.assertIn("`percsctl resume`", done.stderr)
        done = self.ctl("apply", self.write("endless.yaml", ENDLESS))
        self.assertIn("is in progress; `percsctl status` shows how far it is", done.stderr)
        self.good("resume")
        self.wait_for("the end", lambda: self.good_json("status")["state"] == "finished")

    def test_a_fault_lasts_as_long_as_a_program_whose_exit_status_it_returns(self):
        done = self.during("sh", "-c", "percsctl fault get cut; exit 7")
        self.assertEqual(7, done.returncode, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^cut +link_down +(active|scheduled) .* sn0-d0-h0:LL0$")
        self.assertRegex(done.stderr, r"^fault cut: from \S+ virtual to \S+ virtual\n$")
        self.assertEqual([], self.ids())
        self.assertEqual(128 + signal.SIGKILL, self.during("sh", "-c", "kill -KILL $$").returncode)
        done = self.during("no-such-program")
        self.assertEqual(127, done.returncode)
        self.assertIn("percsctl fault: cannot run no-such-program: No such file or directory\n",
                      done.stderr)
        # Somebody else ends it: what the program says counts all the same.
        done = self.during("sh", "-c", "percsctl fault reset; exit 3")
        self.assertEqual((3, "1 fault deleted at "), (done.returncode, done.stdout[:19]))
        self.assertRegex(done.stderr, r"^fault cut: from \S+ virtual; it was deleted before the "
                                      r"program ended\n$")
        self.assertEqual([], self.ids())
        self.check_replay()

    def test_routes_mark_a_link_that_is_down_before_tables_change(self):
        live = self.good_json("routes", "sn0-d0-h0", "sn0-d0-h1")
        self.assertEqual([True, True], [hop["up"] for hop in live["routes"][0]["hops"]])
        self.good("stop", "--wait")
        self.good("apply", self.write("kept.yaml", ENDLESS + "reroute: false\n"))
        self.wait_for("running", lambda: self.good_json("status")["state"] == "running")
        self.good("fault", "create", "cut", *CUT)
        self.wait_for("a dead link", lambda: self.good_json("health")["links_down"])
        # From either end.
        for hubs in (("sn0-d0-h0", "sn0-d0-h1"), ("sn0-d0-h1", "sn0-d0-h0")):
            hops = self.good_json("routes", *hubs)["routes"][0]["hops"]
            self.assertEqual([False, True], [hop["up"] for hop in hops])
            self.assertIn(", DOWN-->", self.good("routes", *hubs))

    def test_what_no_link_can_do_is_refused_with_the_arithmetic(self):
        flap = ("--kind", "flap", "--period", "2ps")
        done = self.ctl("fault", "create", "fast", *flap, "--mode", "all")
        self.assertEqual(BAD_INPUT, done.returncode)
        self.assertRegex(done.stderr, r"2 x 55ns / 2ps x \d+ places = \d+ changes; at most 10000 "
                         r"are carried out\. Write a period of at least \d+ps")
        done = self.ctl("fault", "create", "lanes", "--kind", "lane_loss", "--link",
                        "sn0-d0-h0:LL0", "--lanes", "99")
        self.assertEqual(BAD_INPUT, done.returncode)
        self.assertIn("99 lanes, but sn0-d0-h0:LL0, which it selects, has 64 + 0 spare; write 1 "
                      "to 64", done.stderr)
        self.assertEqual([], self.ids())
        self.assertEqual("running", self.good_json("status")["state"])

    def test_ctrl_c_ends_the_program_and_then_the_fault(self):
        process = subprocess.Popen(
            [BIN / "percsctl", "fault", "create", "cut", *CUT, "--", "sleep", "60"], env=self.env,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.addCleanup(process.kill)
        self.wait_for("the program", lambda: self.ids() == ["cut"] and subprocess.run(
            ["pgrep", "-g", str(process.pid), "-x", "sleep"], stdout=subprocess.DEVNULL).returncode
            == 0)
        os.killpg(process.pid, signal.SIGINT)
        _, error = process.communicate(timeout=LIMIT_SECONDS)
        self.assertEqual(INTERRUPTED, process.returncode, error)
        self.assertEqual([], self.ids())

    def test_one_that_was_there_before_is_left_and_flags_that_make_no_sense_are_refused(self):
        self.good("fault", "create", "cut", *CUT)
        done = self.during("touch", "ran")
        self.assertEqual(FAILED, done.returncode)
        self.assertEqual('percsctl fault: a fault "cut" exists already, and this command would '
                         'delete it at the end; delete it first, or choose another name\n',
                         done.stderr)
        self.assertFalse((self.folder / "ran").exists())
        self.assertEqual(["cut"], self.ids())
        self.bad(BAD_INPUT, "percsctl fault: fault cut has no lease; it lasts "
                            "until it ends or is deleted", "fault", "hold", "cut")
        for flags, message in (
                (("--lease", "wall:30s"), "--lease: the fault lasts as long as COMMAND runs; "
                                          "leave --lease out"),
                (("--duration", "wall:1s"), "--duration wall:1s: the fault lasts as long as "
                                            "COMMAND runs; leave --duration out"),
                (("--format", "json"),
                 "--format json: COMMAND writes to standard output; leave --format out")):
            self.bad(USAGE, f"percsctl fault: {message}", "fault", "create", "other", *CUT, *flags,
                     "--", "touch", "ran")
        for flags, message in (
                (("--lease", "30s"), '--lease: "30s" is a virtual time, but this option takes '
                                     'wall-clock time; write wall:30s'),
                (("--lease", "wall:1us"),
                 "--lease: wall:1us is less than a millisecond; write wall:1ms or more"),
                (("--lease", "wall:1s", "--duration", "wall:1s"),
                 "--duration wall:1s sets a lease that is not renewed; leave --lease out"),
                (("--at", "1s", "--duration", "wall:1s"),
                 "--duration wall:1s: a wall-clock duration counts from now, but with --at 1s "
                 "the fault may begin later; write a virtual duration, or a wall-clock --at "
                 "(wall:5s)"),
                (("--period", "wall:1s"), "--period: wall:1s is wall-clock time, but this option "
                                          "takes virtual time; write 1s")):
            self.bad(USAGE, f"percsctl fault: {message}", "fault", "create", "other", *CUT, *flags)
        self.bad(USAGE, "percsctl fault: --duration wall:1s: only `fault create` takes a "
                        "wall-clock duration; write a virtual one, or delete the fault and "
                        "create it again with --duration wall:1s", "fault", "update", "cut",
                        *CUT, "--duration", "wall:1s")
        self.assertEqual(["cut"], self.ids())

    def test_a_lease_ends_a_fault_that_nobody_holds(self):
        made = self.good_json("fault", "create", "mine", *CUT, "--lease",
                              f"wall:{LEASE_SECONDS}s")
        self.assertEqual(LEASE_SECONDS * 1000, made["lease_wall_ms"])
        end = time.monotonic() + 1.5 * LEASE_SECONDS
        while time.monotonic() < end:
            self.assertEqual(f"lease of fault mine renewed for {LEASE_SECONDS}000 ms\n",
                             self.good("fault", "hold", "mine"))
        self.good("fault", "update", "mine", *CUT, "--duration", "100s")
        self.good("fault", "hold", "mine")  # it is the same fault to who is interested in it
        self.assertEqual(["mine"], self.ids())
        self.wait_for("the end of the lease", lambda: self.ids() == [])
        for command in ("hold", "get", "delete"):
            done = self.ctl("fault", command, "mine")
            self.assertEqual(BAD_INPUT, done.returncode)
            self.assertIn('no fault "mine" exists, or it is already deleted', done.stderr)
        self.check_replay()

    def test_a_duration_of_the_wall_clock_ends_it_by_a_command_that_replays(self):
        self.assertIn("places", self.good("fault", "preview", "cut", *CUT, "--duration", "wall:1s"))
        text = self.good("fault", "create", "cut", *CUT, "--duration", "wall:300ms")
        self.assertRegex(text, r"(?m)^its lease expires in 300 ms of wall time, unless it is "
                               r"renewed$")
        begun = self.good_json("status")["virtual_ps"]
        self.wait_for("its end", lambda: self.ids() == [])
        listed = self.good("replay", self.folder / "state" / "percs" / "default", "--list")
        self.assertRegex(listed, r'(?m)^ *\S+ virtual +.*delete_fault: "cut"', "stamped and kept")
        self.assertGreater(self.good_json("status")["virtual_ps"], begun)
        self.assertRegex(self.good("events"), r"(?m)^ +\d+ +fault_deleted +\S+ +cut: ")
        self.check_replay()

    def test_update_and_get_tell_the_fault_as_it_is(self):
        self.good("fault", "create", "mine", *CUT, "--at", "100s")
        updated = self.good_json("fault", "update", "mine", "--kind", "lane_loss", "--lanes", "2",
                                 "--link", "sn0-d0-h0:LR0")["fault"]
        self.assertEqual(("lane_loss", ["sn0-d0-h0:LR0"]), (updated["kind"], updated["targets"]))
        self.wait_for("it to begin", lambda: self.good_json("fault", "get", "mine")["faults"][0][
            "injections"] == 1)
        (got,) = self.good_json("fault", "get", "mine")["faults"]
        self.assertEqual(("active", updated["number"], 0),
                         (got["phase"], got["number"], got["packets_lost"]))
        done = self.ctl("fault", "update", "other", *CUT)
        self.assertEqual(BAD_INPUT, done.returncode)
        self.assertIn('no fault "other" exists, or it is already deleted; faults: mine',
                      done.stderr)

    def test_events_are_followed_until_ctrl_c(self):
        with open(self.folder / "events", "w+") as told:
            follower = subprocess.Popen(
                [BIN / "percsctl", "events", "--follow", "--format", "json"], env=self.env,
                stdout=told, stderr=subprocess.PIPE, text=True)
            self.addCleanup(follower.communicate)
            self.addCleanup(follower.kill)

            def kinds():
                lines = (self.folder / "events").read_text().splitlines()
                return [json.loads(line)["kind"] for line in lines]
            for ident in ("first", "second"):  # what was there before it began, and what came later
                self.good("fault", "create", ident, *CUT, "--duration", "1us")
                wanted = {"first": 1, "second": 2}[ident]
                self.wait_for("its events", lambda: kinds().count("fault_recovered") == wanted)
            self.good("pause")
            self.assertIsNone(follower.poll())
            follower.send_signal(signal.SIGINT)  # nothing happens, and nothing will
            _, error = follower.communicate(timeout=LIMIT_SECONDS)
        self.assertEqual((INTERRUPTED, "percsctl events: no longer following events\n"),
                         (follower.returncode, error))

    def test_events_that_are_kept_no_longer_are_a_gap(self):
        self.good("stop", "--wait")
        self.good("apply", self.write("flapping.yaml", FLAPPING), "--wait")
        gap, first, *others = map(json.loads, self.good("events", "--format", "json").splitlines())
        self.assertEqual(("gap", first["sequence"] - 1), (gap["kind"], gap["lost"]))
        self.assertGreater(gap["lost"], 0)
        self.assertEqual(KEPT, 1 + len(others))
        self.assertRegex(self.good("events").splitlines()[1], rf"^ +gap +{gap['lost']} earlier "
                                                              rf"events are no longer kept$")
        last = others[-1]["sequence"]
        self.assertEqual(last, json.loads(self.good("events", "--after", last - 1, "--format",
                                                    "json"))["sequence"], "and none before it")

    def test_long_waits_for_single_commands_are_said_in_wall_time(self):
        wait = r" virtual \(= \d+ min \d\d s at 10us/s\)\n$"
        self.assertRegex(self.good("fault", "link-down", "sn0-d0-h0:LL0", "--at", "20ms"), wait)
        self.assertRegex(self.good("fault", "link-up", "sn0-d0-h0:LL0", "--at", "20ms"), wait)
        self.assertRegex(self.good("fault", "link-errors", "sn0-d0-h0:LL0", "--flit-rate", "0.1",
                                   "--at", "20ms"), wait)
        self.assertRegex(self.good("fault", "lanes", "sn0-d0-h0:LL0", "--lost", "1", "--at",
                                   "20ms"), wait)
        self.assertNotIn("(=", self.good("fault", "link-down", "sn0-d0-h0:LL0"))


if __name__ == "__main__":
    unittest.main()
