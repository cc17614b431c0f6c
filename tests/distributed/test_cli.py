"""percsctl as a user meets it: real binaries, whole messages, exit codes.

Method: every test runs the built percsctl (PERCS_BIN_DIR, or build/bin) with a state directory of
its own. Messages are compared whole, because they are what a user has. Fabrics that a test starts
are stopped when it ends, whatever happens.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from tests.support.fabric import SLOWER, wait_for  # noqa: E402

BIN = pathlib.Path(os.environ.get("PERCS_BIN_DIR", ROOT / "build" / "bin"))
SCENARIOS = ROOT / "deploy" / "scenarios"
LIMIT_SECONDS = 100 * SLOWER

OK, FAILED, USAGE, BAD_INPUT, UNREACHABLE, DEADLOCK, REFUSED, INTERRUPTED = 0, 1, 2, 3, 4, 5, 7, 130

TINY = """\
name: tiny
topology: {supernodes: 1, drawers: 2, hubs: 2}
workload:
  all_to_all: {bytes: 8KiB}
"""
BROKEN_LINK = TINY + """\
faults:
  - {id: cut, at: 1us, link_down: sn0-d0-h0/sn0-d1-h0}
"""
TREES = """\
name: trees
topology: {supernodes: 2, drawers: 1, hubs: 3}
multicast:
  - {name: everybody, source: sn0-d0-h0}
  - {name: few, source: sn0-d0-h0, members: sn0-d0-h2 sn1-d0-h1}
clock: {period: 5us}
service:
  probe_rounds: 3
  probe_period: 10us
  pings: [{from: sn0-d0-h0, to: sn1-d0-h2, count: 20, period: 4us}]
workload:
  pattern: {pattern: multicast, load: 0.02, measure: 100us, payload: verified}
faults:
  - {id: cut, at: 20us, link_down: sn0-d0-h0/sn0-d0-h2}
"""
ENDLESS = """\
name: endless
topology: {supernodes: 1, drawers: 2, hubs: 2}
workload:
  pattern: {pattern: uniform, load: 0.05, reliable: true, payload: verified}
run: {clock: live, pace: 10us/s}
"""
DEADLOCKING = """\
name: stuck
topology: {supernodes: 4, drawers: 1, hubs: 4}
parameters: {vc_policy: single}
workload:
  all_to_all: {bytes: 64KiB, reliable: false, payload: lengths}
"""


def running(pid):
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state not in "ZX"


def heeds(pid, number):
    """Whether the process catches or blocks this signal."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    masks = re.findall(r"(?m)^Sig(?:Cgt|Blk):\s+([0-9a-f]+)$", status)
    return any(int(mask, 16) >> (number - 1) & 1 for mask in masks)


class CliTest(unittest.TestCase):
    """Gives each test a folder, a state directory and a percsctl."""

    maxDiff = None

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="percs-cli-"))
        self.env = dict(os.environ, XDG_STATE_HOME=str(self.folder / "state"), LC_ALL="C")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.addCleanup(lambda: self.ctl("down", "--all", "--grace", "wall:3s"))

    def ctl(self, *arguments):
        return subprocess.run([BIN / "percsctl", *map(str, arguments)], env=self.env, text=True,
                              capture_output=True, timeout=LIMIT_SECONDS, cwd=self.folder)

    def good(self, *arguments):
        done = self.ctl(*arguments)
        self.assertEqual(OK, done.returncode, f"percsctl {arguments}\n{done.stdout}{done.stderr}")
        return done.stdout

    def good_json(self, *arguments):
        return json.loads(self.good(*arguments, "--format", "json"))

    def bad(self, code, message, *arguments):
        """The command fails with `code`, and its whole error output is `message`."""
        done = self.ctl(*arguments)
        self.assertEqual(message.strip(), done.stderr.strip())
        self.assertEqual(code, done.returncode)

    def wait_for(self, what, condition):
        return wait_for(condition, what)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return name  # commands run in the folder, so that messages have no changing path


class InProcessTest(CliTest):
    def test_a_run_reports_what_is_documented(self):
        report = self.good_json("run", self.write("tiny.yaml", TINY))
        for key in ("digest", "virtual_seconds", "wall_seconds", "packets_delivered", "flit_hops",
                    "drops", "latency_ns", "link_utilisation"):
            self.assertIn(key, report)
        self.assertRegex(report["digest"], "^[0-9a-f]{32}$")
        self.assertEqual(12, report["messages"]["delivered"])
        self.assertEqual(12 * 8192, report["messages"]["payload_bytes_verified"])
        self.assertEqual([], report["violations"])
        self.assertEqual({"LL", "LR", "D", "HFI"}, set(report["link_utilisation"]))

    def test_people_get_a_report_with_virtual_times_marked(self):
        text = self.good("run", self.write("tiny.yaml", TINY))
        self.assertRegex(text, r"(?m)^virtual time +[0-9.]+us$")
        self.assertIn("checkers: all held", text)

    def test_threads_do_not_change_the_digest_and_seeds_do(self):
        file = self.write("drawer.yaml", (SCENARIOS / "one-drawer.yaml").read_text())
        one = self.good_json("run", file)["digest"]
        self.assertEqual(one, self.good_json("run", file, "--threads", 2)["digest"])
        self.assertNotEqual(one, self.good_json("run", file, "--seed", 99)["digest"])

    def test_a_setting_changes_the_scenario(self):
        file = self.write("tiny.yaml", TINY)
        report = self.good_json("run", file, "--set", "topology.hubs=4", "--set", "name=wider")
        self.assertEqual(("wider", 8), (report["scenario"], report["nodes"]))
        self.bad(BAD_INPUT,
                 'percsctl run: --set topology.hub=4: no field "hub" in "topology"; did you mean '
                 '"hubs"?', "run", file, "--set", "topology.hub=4")

    def test_a_cut_link_is_reported_with_its_timeline(self):
        report = self.good_json("run", SCENARIOS / "link-failure.yaml")
        self.assertGreater(report["drops"]["link_down"], 0)
        self.assertEqual(0, report["messages"]["failed"])
        first = report["reroutes"][0]
        self.assertEqual(["sn0-d0-h0:LR0"], first["down"])
        self.assertLess(first["raised_ns"], first["committed_ns"])
        self.assertLess(first["first_packet_ns"], 120_000)

    def test_multicasts_and_the_clock_are_reported(self):
        report = self.good_json("run", self.write("trees.yaml", TREES))
        self.assertEqual([], report["violations"])
        self.assertGreater(report["packets_replicated"], 0)
        clock = report["clock"]
        self.assertEqual((["sn0-d0-h0"], 6), (clock["sources"], clock["synchronised"]))
        self.assertLessEqual(clock["skew_max_ps"], clock["bound_ps"])
        text = self.good("run", "trees.yaml")
        self.assertRegex(text, r"(?m)^global clock +6 of 6 hubs synchronised, every 5us from sn0")
        tables = json.loads(self.good("routes", "dump", "trees.yaml"))
        self.assertEqual({"LL1", "D0"},
                         set(tables["nodes"][0]["multicast"][1].split()))
        bad = self.write("bad.yaml", TREES.replace("sn1-d0-h1}", "sn7-d0-h1}"))
        done = self.ctl("run", bad)
        self.assertEqual(BAD_INPUT, done.returncode)
        self.assertRegex(done.stderr, r"multicast group few, member: no hub is named \"sn7-d0-h1\"")

    def test_service_ports_are_reported(self):
        report = self.good_json("run", self.write("trees.yaml", TREES))["service"]
        asked = 20 + 3 * 14  # pings, and both ends of 7 links; one dies before the last round
        self.assertEqual(asked, report["answers"] + report["unanswered"])
        self.assertEqual((2, 0), (report["unanswered"], report["wrong_partner"]))
        self.assertGreaterEqual(report["requests"], asked + 2 * 2)
        self.assertGreater(report["round_trip_max_ns"], report["round_trip_mean_ns"])
        self.assertRegex(self.good("run", "trees.yaml"),
                         r"(?m)^service +\d+ requests, \d+ answers after .*, 2 unanswered")
        bad = self.write("bad.yaml", TREES.replace("to: sn1-d0-h2", "to: sn0-d0-h0"))
        done = self.ctl("run", bad)
        self.assertEqual(BAD_INPUT, done.returncode)
        self.assertRegex(done.stderr, r"bad.yaml:\d+:\d+: service.pings\[0\]: sn0-d0-h0 pings "
                         "sn0-d0-h0; write two different hubs")

    def test_ctrl_c_ends_a_run(self):
        file = self.write("endless.yaml", ENDLESS + "stop_at: 1000s\n")
        process = subprocess.Popen([BIN / "percsctl", "run", file], env=self.env, cwd=self.folder,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        # From then on it is an answer to Ctrl-C that ends it, and before it is the default.
        self.wait_for("it to heed signals", lambda: heeds(process.pid, signal.SIGINT))
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=LIMIT_SECONDS)
        self.assertEqual(INTERRUPTED, process.returncode)
        self.assertIn("percsctl run: ", error)
        self.assertNotIn("\r", error, "no progress line where no terminal is")

    def test_a_deadlock_has_its_own_exit_code_and_shows_the_cycle(self):
        done = self.ctl("run", self.write("stuck.yaml", DEADLOCKING))
        self.assertEqual(DEADLOCK, done.returncode, done.stderr)
        self.assertRegex(done.stderr, r"^percsctl run: deadlock at .*wait-for cycle: sn\d-d0-h\d:")

    def test_check_reports_every_error_with_its_place(self):
        self.assertIn("tiny.yaml: ok (tiny: 4 hubs, all_to_all, 0 faults)",
                      self.good("check", self.write("tiny.yaml", TINY)))
        text = TINY.replace("hubs: 2", "hubs: 2, hub: 3").replace("8KiB", "8")
        bad = self.write("bad.yaml", text)
        done = self.ctl("check", bad)
        self.assertEqual(BAD_INPUT, done.returncode)
        self.assertRegex(done.stderr, r'(?m)^bad\.yaml:2:\d+: topology\.hub: .*"hubs"')
        self.assertRegex(done.stderr, r"(?m)^bad\.yaml:4:\d+: workload\.all_to_all\.bytes: .*8")
        self.assertIn("percsctl check: 2 errors in 1 file", done.stderr)
        listed = json.loads(self.ctl("check", bad, "--format", "json").stdout)
        self.assertEqual(2, len(listed[0]["errors"]))

    def test_the_documented_scenarios_are_good(self):
        self.good("check", *sorted(SCENARIOS.glob("*.yaml")))

    def test_what_never_ends_is_refused_in_process(self):
        self.bad(BAD_INPUT,
                 "percsctl run: endless.yaml: this workload runs until it is stopped; limit it "
                 "with `--set workload.pattern.count=1000`, `--set "
                 "workload.pattern.measure=100us` or `--set stop_at=1ms`, or use `percsctl up` "
                 "and `apply`",
                 "run", self.write("endless.yaml", ENDLESS))
        for setting in ("workload.pattern.count=10", "workload.pattern.measure=1us", "stop_at=1us"):
            self.good("run", "endless.yaml", "--set", setting)

    def test_a_file_that_is_not_there(self):
        done = self.ctl("run", "nowhere.yaml")
        self.assertEqual(BAD_INPUT, done.returncode)
        self.assertRegex(done.stderr, r"^percsctl run: .*nowhere\.yaml.*No such file or directory")

    def test_an_impossible_machine_shows_the_arithmetic(self):
        file = self.write("big.yaml", TINY.replace("supernodes: 1", "supernodes: 513"))
        done = self.ctl("run", file)
        self.assertEqual(BAD_INPUT, done.returncode)
        self.assertRegex(done.stderr, r"big\.yaml:\d+:\d+: topology.*512")

    def test_usage_errors(self):
        self.bad(USAGE, "percsctl: name a command; `percsctl help` lists them\n"
                 "See `percsctl --help`.")
        self.bad(USAGE, "percsctl run: FILE is required\nSee `percsctl run --help`.", "run")
        self.bad(USAGE, "percsctl process: name a command: kill, stop, continue, restart, break\n"
                 "See `percsctl process --help`.", "process")
        done = self.ctl("run", self.write("tiny.yaml", TINY), "--threads", 0)
        self.assertEqual(USAGE, done.returncode)
        self.bad(USAGE,
                 'percsctl up: --timeout: "5s" is a virtual time, but this option takes '
                 'wall-clock time; write wall:5s', "up", "--timeout", "5s")
        self.bad(USAGE, "percsctl up: --loss-deadline: write at least wall:1ms",
                 "up", "--loss-deadline", "wall:0s")

    def test_every_command_has_help_with_examples(self):
        text = self.good("--help")
        commands = re.findall(r"(?m)^  ([a-z]+)  ", text)
        self.assertIn("run", commands)
        self.assertIn("counters", commands)
        for command in commands:
            text = self.good(command, "--help")
            self.assertRegex(text, rf"Examples:\n.*percsctl {command}", command)

    def test_schema_version_and_completion(self):
        self.assertIn("Scenario", json.loads(self.good("schema"))["definitions"])
        version = self.good_json("version")
        self.assertEqual({"software", "wire", "format", "model", "journal", "state",
                          "build"}, set(version))
        checked = subprocess.run(["bash", "-n"], input=self.good("completion", "bash"), text=True)
        self.assertEqual(0, checked.returncode)


class CollectiveTest(CliTest):
    def test_a_loop_among_tasks_is_measured_in_every_layout(self):
        call = ("collective", "allreduce", "--nodes", 2, "--tasks", 4, "--algorithm", "hybrid:p2p",
                "--iterations", 20)
        report = self.good_json(*call, "--size", "8..32,100KiB")
        self.assertEqual([8, 16, 32, 102400], [row["bytes"] for row in report["rows"]])
        self.assertEqual([0] * 4, [row["wrong"] for row in report["rows"]])
        times = [row["nanoseconds"] for row in report["rows"]]
        self.assertEqual(sorted(times), times)
        self.assertEqual(8, report["tasks"])
        mean = f"{times[0] / 1000:.2f}"
        osu = self.good(*call, "--format", "osu").splitlines()
        self.assertEqual(["8", mean], osu[2].split()[:2])
        imb = self.good(*call, "--format", "imb").splitlines()
        self.assertEqual(("8", "20", mean), tuple(imb[-1].split()[i] for i in (0, 1, 4)))
        self.assertIn("data correct after every call", self.good(*call))

    def test_what_tasks_cannot_do_is_refused_by_name(self):
        self.bad(BAD_INPUT,
                 "percsctl collective: 513 nodes: write 1 to 512, so that every hub has a D link "
                 "to "
                 "each supernode", "collective", "barrier", "--nodes", 513)
        self.bad(BAD_INPUT, "percsctl collective: root 8: tasks are 0 to 7", "collective", "reduce",
                 "--nodes", 8, "--root", 8)
        done = self.ctl("collective", "allreduce", "--op", "xor", "--type", "float")
        self.assertEqual(BAD_INPUT, done.returncode)
        self.assertIn("xor", done.stderr)
        done = self.ctl("collective", "barrier", "--blade", "QS20", "--nodes", 4)
        self.assertEqual(USAGE, done.returncode)
        self.assertIn("--nodes excludes --blade", done.stderr)

    def test_what_a_tree_of_caus_cannot_do_is_refused_by_name(self):
        def refused(text, *arguments):
            done = self.ctl(*arguments)
            self.assertEqual(BAD_INPUT, done.returncode, done.stderr)
            self.assertIn(text, done.stderr)

        def scenario(trees, collective):
            return self.write("bad.yaml", "topology: {drawers: 1, hubs: 4}\n" + trees + "\n"
                              "workload: {collective: {algorithm: cau, " + collective + "}}\n")

        on_tree = ("collective", "allreduce", "--nodes", 4, "--algorithm", "cau")
        refused("a CAU does not support prod of int64 operands", *on_tree, "--op", "prod")
        refused("a CAU does not support maxloc of int32 operands",
                *on_tree, "--op", "maxloc", "--type", "int32")
        refused("cau allreduce of 72 bytes: a CAU packet has at most 64", *on_tree, "--size", 72)
        refused("fan_out: 9 is out of range; allowed: 1 to 8",
                "run", scenario("trees: [{name: a, members: all, fan_out: 9}]", "bytes: 8B"))
        few = "trees: [{name: a, members: 'sn0-d0-h0, sn0-d0-h1, sn0-d0-h3'}]"
        refused("the 3 participants of tree 0 ('a') are not the nodes with tasks, which are 0 to 3",
                "run", scenario(few, "bytes: 8B"))
        refused('there is no tree "b"',
                "run", scenario("trees: [{name: a, members: all}]", "tree: b"))
        many = "trees: [" + ", ".join(f"{{name: t{i}, members: all}}" for i in range(65)) + "]"
        refused("trees[64]: the CAU of sn0-d0-h0 has only 64 indexes, and this tree needs one more",
                "run", scenario(many, "bytes: 8B"))

    def test_tasks_go_on_when_their_tree_was_set_up_anew(self):
        file = SCENARIOS / "collective-repair.yaml"
        here = self.good_json("run", file)
        result = here["collective"]
        self.assertEqual((32, 200, 0), (result["tasks"], result["iterations"], result["wrong"]))
        repairs = here["trees"][0]["repairs"]
        self.assertEqual([[]], [repair["lost"] for repair in repairs])
        self.assertIn("received no acknowledgement from", repairs[0]["problem"])
        self.good("up", file, "--daemons", 2)
        self.assertEqual(here["digest"], self.good_json("apply", file, "--wait")["digest"])

    def test_tasks_that_lose_a_node_of_their_tree_say_so(self):
        cuts = "\n".join(f"- {{at: 40us, link_down: sn0-d0-h2/sn0-d0-h{hub}}}" for hub in (0, 1, 3))
        file = self.write("lost.yaml", "topology: {drawers: 1, hubs: 4}\nworkload: {collective: "
                          "{algorithm: cau, iterations: 200}}\nfaults:\n" + cuts + "\n")
        done = self.ctl("run", file)
        self.assertEqual(DEADLOCK, done.returncode)
        self.assertIn("3 of the 4 nodes are left in the tree that was set up again after",
                      done.stderr)

    def test_places_of_extremes_are_found_by_name(self):
        report = self.good_json("collective", "allreduce", "--nodes", 3, "--tasks", 2, "--op",
                                "minloc", "--type", "double", "--size", 32, "--iterations", 5)
        self.assertEqual([0], [row["wrong"] for row in report["rows"]])
        file = self.write("maxloc.yaml", "topology: {drawers: 1, hubs: 4}\nworkload: {collective: "
                          "{op: maxloc, type: float, bytes: 24B, iterations: 5}}\n")
        self.assertEqual(0, self.good_json("run", file)["collective"]["wrong"])

    def test_a_supernode_of_daemons_reduces_as_one_process_does(self):
        text = (SCENARIOS / "supernode-collective.yaml").read_text()
        file = self.write("few.yaml", text.replace("iterations: 20", "warm_up: 1, iterations: 4"))
        here = self.good_json("run", file)
        result = here["collective"]
        self.assertEqual((1024, 4, 0), (result["tasks"], result["iterations"], result["wrong"]))
        for daemons in (4, 32):
            self.good("up", file, "--daemons", daemons, "--name", f"of-{daemons}")
            there = self.good_json("apply", file, "--wait", "--name", f"of-{daemons}")
            self.assertEqual(here["digest"], there["digest"])
            self.assertEqual(result, there["collective"])
            self.good("down", "--name", f"of-{daemons}")

    def test_daemons_give_the_digest_and_the_times_of_one_process(self):
        file = SCENARIOS / "collective.yaml"
        here = self.good_json("run", file)
        self.assertEqual((256, 0), (here["collective"]["tasks"], here["collective"]["wrong"]))
        self.good("up", file, "--daemons", 3)
        there = self.good_json("apply", file, "--wait")
        self.assertEqual(here["digest"], there["digest"])
        self.assertEqual(here["collective"], there["collective"])

    def test_published_ratios_stand_beside_emulated_ones(self):
        rows = self.good_json("validate", "smartmap", "--only", "SMAP-008")["rows"]
        self.assertEqual([(1024, 1024)], [(row["published"], row["emulated"]) for row in rows])
        rows = self.good_json("validate", "p7ih", "--only", "P7IH-025")["rows"]
        self.assertEqual([("P7IH-025", 1.83, "calibrated")],
                         [(row["id"], row["published"], row["kind"]) for row in rows])
        self.bad(BAD_INPUT, 'percsctl validate: no row of p7ih begins with "CELL"',
                 "validate", "p7ih", "--only", "CELL")


class CellTest(CliTest):
    def test_a_collective_is_measured_with_its_data_checked(self):
        report = self.good_json("collective", "broadcast", "--blade", "QS20", "--bytes", 4096,
                                "--iterations", 50)
        self.assertEqual("TTBcastB_Opt D2", report["algorithm"])
        self.assertEqual((16, 0), (report["spes"], report["wrong"]))
        self.assertGreater(report["gigabytes_per_second"], 1)
        again = self.good_json("collective", "broadcast", "--blade", "QS20", "--bytes", 4096,
                                "--iterations", 50)
        self.assertEqual(report, again)
        self.assertIn("PEBar on 8 SPEs of a QS22", self.good(
            "collective", "barrier", "--blade", "QS22", "--spes", 8, "--iterations", 50))

    def test_what_a_blade_cannot_do_is_refused_by_name(self):
        self.bad(BAD_INPUT, "percsctl collective: unknown blade type 'QS23'; it is one of QS20, "
                 "QS21, QS22", "collective", "barrier", "--blade", "QS23")
        self.bad(BAD_INPUT,
                 "percsctl collective: a group of 17 SPEs; a blade has 16, so write 1 to 16",
                 "collective", "barrier", "--blade", "QS20", "--spes", 17)
        self.bad(BAD_INPUT, "percsctl collective: unknown algorithm 'PERed'; it is one of auto, "
                 "ATORed, ATORedB_Opt, TTRed[ D<degree>], TTRedB_Opt[ D<degree>]",
                 "collective", "reduce", "--blade", "QS20", "--algorithm", "PERed")
        done = self.ctl("collective", "reduce", "--blade", "QS20", "--elements", 513,
                        "--algorithm", "ATORedB_Opt")
        self.assertEqual(BAD_INPUT, done.returncode)
        self.assertIn("reduce rule: 513 elements; ATORedB_Opt takes 1 to 512", done.stderr)

    def test_two_daemons_that_each_host_a_triblade_give_the_digest_of_one_process(self):
        file = SCENARIOS / "triblades.yaml"
        here = self.good_json("run", file)
        self.good("up", file, "--daemons", 3)
        there = self.good_json("apply", file, "--placement", "8,1,1", "--wait")
        self.assertEqual([], there["violations"])
        self.assertEqual(here["digest"], there["digest"])

    def test_daemons_of_triblades_and_one_of_crossbars_give_the_digest_of_one_process(self):
        file = SCENARIOS / "roadrunner.yaml"
        here = self.good_json("run", file)
        self.good("up", file, "--daemons", 5)
        there = self.good_json("apply", file, "--placement", "8,1,1,2,360", "--wait")
        self.assertEqual([], there["violations"])
        self.assertEqual(here["digest"], there["digest"])
        route = self.good("routes", "triblade0", "triblade1")
        self.assertIn("cu0-leaf0", route)

    def test_forwarding_tables_are_dumped_loaded_and_compared_by_name(self):
        file = self.write("tree.yaml", "topology: {drawers: 1, hubs: 2, "
                          "infiniband: {gateway: sn0-d0-h1}}\n"
                          "blades: [{name: triblade, type: triblade, count: 2, attach: cu0}]\n")
        live, planned, around = (self.folder / name for name in ("live", "planned", "around"))
        self.good("up", file, "--daemons", 2)
        self.good("apply", file, "--hold")
        self.good("routes", "dump", "-o", live)
        self.good("routes", "dump", file, "-o", planned)
        self.good("routes", "diff", live, planned)
        self.assertIn("cu0-spine11", self.good("routes", "triblade0", "sn0-d0-h0"))
        self.good("routes", "dump", file, "--down", "cu0-spine11:p23", "-o", around)
        self.assertIn("cu0-leaf0 forwarding 0: 30 -> 19",
                      self.ctl("routes", "diff", live, around).stdout)
        self.good("routes", "load", around)
        def loaded():
            text = self.good("routes", "triblade0", "sn0-d0-h0")
            return text if "epoch 2" in text else None
        self.assertIn("cu0-spine0", self.wait_for("the next epoch", loaded))
        full = self.write("full.yaml", "topology: {drawers: 1, hubs: 2, infiniband: {}}\n"
                          "blades: [{name: triblade, type: triblade, count: 181, attach: cu0}]\n")
        done = self.ctl("check", full)
        self.assertEqual(BAD_INPUT, done.returncode)
        self.assertIn("CU 0: 181 triblades; its switch of 288 ports", done.stderr)

    def test_two_daemons_that_each_host_a_blade_give_the_digest_of_one_process(self):
        file = SCENARIOS / "cell-blades.yaml"
        here = self.good_json("run", file)
        self.good("up", file, "--daemons", 6)
        there = self.good_json("apply", file, "--placement", "2,2,2,2,1,1", "--wait")
        self.assertEqual([], there["violations"])
        self.assertEqual(here["digest"], there["digest"])


class RoadrunnerTest(CliTest):
    def test_messages_between_any_two_spes_are_measured(self):
        report = self.good_json("perf", "triblade0:spe0", 200 * 32, "--bytes", "0,128,131072")
        self.assertEqual(("network", 5), (report["distance"], report["crossbars"]))
        times = [size["half_round_trip_ps"] for size in report["sizes"]]
        self.assertEqual(sorted(times), times)
        self.assertLess(report["sizes"][2]["gigabytes_per_second"], 2 / 3)
        receiver, sender = (
            self.good_json("perf", 0, 8, "--bytes", 0, "--protocol", who)["sizes"][0]
            for who in ("receiver", "sender"))
        self.assertLess(receiver["half_round_trip_ps"], sender["half_round_trip_ps"])

    def test_what_is_no_spe_is_refused(self):
        self.bad(BAD_INPUT, "percsctl perf: no SPE 'triblade0:spe32'; SPEs are named like "
                 "triblade0:spe31, or by MPI rank", "perf", "triblade0:spe32", 0)

    def test_published_figures_stand_beside_emulated_ones(self):
        report = self.good_json("validate", "roadrunner", "--only", "RR-03")
        rows = {row["id"]: row for row in report["rows"]}
        self.assertAlmostEqual(11.77, rows["RR-037"]["emulated"], 2)
        self.assertTrue(all(row["holds"] is not False for row in rows.values()))


class UnreachableTest(CliTest):
    def test_no_local_fabric(self):
        for command in (["status"], ["links"], ["counters"], ["stop"], ["result"],
                        ["routes", "sn0-d0-h0", "sn0-d0-h1"],
                        ["fault", "link-down", "sn0-d0-h0:LL0"]):
            self.bad(UNREACHABLE,
                     f'percsctl {command[0]}: no local fabric is called "default"; there is none, '
                     "`percsctl up` starts one", *command)
        self.assertEqual("no local fabric; `percsctl up` starts one\n", self.good("ps"))
        self.assertEqual("no local fabric to stop\n", self.good("down", "--all"))
        self.bad(BAD_INPUT, 'percsctl down: no local fabric is called "lab"; there is none, '
                 "`percsctl up` starts one", "down", "--name", "lab")

    def test_nobody_listens_there(self):
        done = self.ctl("status", "--controller", "unix:/nonexistent/controller.sock")
        self.assertEqual(UNREACHABLE, done.returncode)
        self.assertRegex(done.stderr, r"^percsctl status: no controller answers at "
                         r"unix:/nonexistent/controller\.sock \(.+\); "
                         r"`percsctl ps` lists the local fabrics\n$")

    def test_a_name_that_is_a_path(self):
        self.bad(BAD_INPUT, 'percsctl up: fabric name "../x": expected 1 to 32 letters, digits, '
                 "'-', '_' and '.', not starting with '.'", "up", "--name", "../x")


@unittest.skipUnless((BIN / "percsd").exists(), "percsd was not built")
class LocalFabricTest(CliTest):
    def pids(self, name):
        for fabric in self.good_json("ps"):
            if fabric["name"] == name:
                return [p["pid"] for p in fabric["processes"] if p["running"]]
        return []

    def test_two_fabrics_live_side_by_side_and_down_stops_only_its_own(self):
        self.good("up", "--name", "one", "--daemons", 2)
        self.good("up", "--name", "two", "--daemons", 1, "--tcp", "--loss-deadline", "wall:90s")
        one, two = self.pids("one"), self.pids("two")
        self.assertEqual((3, 2), (len(one), len(two)))
        command = pathlib.Path(f"/proc/{two[0]}/cmdline").read_text().split("\0")
        self.assertEqual("90", command[command.index("--loss-deadline") + 1])
        self.bad(FAILED,
                 'percsctl up: fabric "one" is running already, with 3 processes; `percsctl down '
                 '--name one` stops it; another --name starts a second fabric', "up", "--name",
                 "one")
        listed = self.good("ps")
        self.assertRegex(listed, r"(?m)^one +3/3 +empty")
        for fabric in self.good_json("ps"):
            self.assertIn(f"\npage of {fabric['name']}: {fabric['page']}\n", listed)
        self.assertIn('fabric "one": 3 processes stopped\n', self.good("down", "--name", "one"))
        self.assertFalse(any(map(running, one)))
        self.assertTrue(all(map(running, two)))
        self.good("status", "--name", "two")

    def test_down_clears_what_a_crash_left(self):
        self.good("up", "--daemons", 2)
        pids = self.pids("default")
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        self.assertRegex(self.good("ps"), r"(?m)^default +0/3 +gone; `percsctl down` cleans it up")
        self.assertIn("3 had exited before", self.good("down"))
        self.assertEqual([], list((self.folder / "state").rglob("*.sock")))
        self.good("up", "--daemons", 1)

    def test_down_leaves_a_recycled_pid_alone(self):
        self.good("up", "--daemons", 1)
        record = self.folder / "state" / "percs" / "default" / "fabric.json"
        data = json.loads(record.read_text())
        stranger = subprocess.Popen(["sleep", "60"])
        self.addCleanup(stranger.wait)
        self.addCleanup(stranger.kill)
        data["processes"].append({"role": "percsd", "pid": stranger.pid, "start": 1, "log": ""})
        record.write_text(json.dumps(data))
        self.good("down")
        self.assertIsNone(stranger.poll())

    def test_a_deep_state_directory_gets_short_sockets(self):
        deep = self.folder / ("x" * 100)
        self.env["XDG_STATE_HOME"] = str(deep)
        self.good("up", "--daemons", 1)
        address = self.good_json("ps")[0]["controller"]
        self.assertLess(len(address), 107)
        self.good("status")
        self.good("down")
        self.assertFalse(pathlib.Path(address.removeprefix("unix:")).parent.exists())

    def test_a_port_in_use_names_its_holder(self):
        with socket.socket() as holder:
            holder.bind(("127.0.0.1", 0))
            holder.listen()
            port = holder.getsockname()[1]
            done = self.ctl("up", "--daemons", 1, "--port", port)
            self.assertEqual(FAILED, done.returncode)
            self.assertIn(f"cannot listen on 127.0.0.1:{port}: port {port} is taken by ",
                          done.stderr)
            self.assertIn(f"(pid {os.getpid()})", done.stderr)
        self.assertEqual([], self.good_json("ps"))
        self.good("up", "--daemons", 1, "--port", port)

    def test_a_scenario_sets_the_number_of_daemons(self):
        file = self.write("tiny.yaml", TINY)
        self.bad(BAD_INPUT, "percsctl up: --daemons 9: tiny.yaml has only 4 hubs; every daemon "
                            "needs at least one", "up", file, "--daemons", 9)
        self.good("up", file)
        self.assertEqual(5, len(self.pids("default")))


@unittest.skipUnless((BIN / "percsd").exists(), "percsd was not built")
class ControlTest(CliTest):
    def setUp(self):
        super().setUp()
        self.good("up", "--daemons", 2)

    def await_state(self, wanted):
        def there():
            status = self.good_json("status")
            return status if status["state"] == wanted else None
        return wait_for(there, f"state {wanted}", said=lambda: self.good("status"))

    def test_a_run_over_daemons_has_the_digest_of_the_run_in_process(self):
        for text in (TINY, BROKEN_LINK, TREES):
            file = self.write("one.yaml", text)
            local = self.good_json("run", file)
            live = self.good_json("apply", file, "--wait")
            for key in ("digest", "virtual_ps", "drops", "messages", "latency_ns", "reroutes",
                        "flit_hops", "ports", "failed_messages", "violations", "clock",
                        "packets_replicated", "service"):
                self.assertEqual(local[key], live[key], key)
            self.assertEqual("2 daemons over unix", live["placement"])
            self.assertEqual(live["digest"], self.good_json("result")["digest"])
            uneven = self.good_json("apply", file, "--placement", f"1,{local['nodes'] - 1}",
                                    "--wait")
            self.assertEqual(local["digest"], uneven["digest"])

    def test_a_scenario_that_is_wrong_changes_nothing(self):
        self.good("apply", self.write("tiny.yaml", TINY), "--wait")
        bad = self.write("bad.yaml", TINY.replace("tiny", "bad").replace("8KiB", "8"))
        done = self.ctl("apply", bad)
        self.assertEqual(BAD_INPUT, done.returncode)
        self.assertRegex(done.stderr,
                         r"^percsctl apply: bad\.yaml:4:\d+: workload\.all_to_all\.bytes")
        self.assertEqual("tiny", self.good_json("status")["scenario"])
        done = self.ctl("apply", "tiny.yaml", "--placement", "1,1")
        self.assertNotEqual(OK, done.returncode)
        self.assertRegex(done.stderr, r"^percsctl apply: [a-z]")  # no name of a method
        self.good("apply", "tiny.yaml", "--wait")

    def test_a_live_fabric_can_be_watched_broken_and_stopped(self):
        self.good("apply", self.write("endless.yaml", ENDLESS))
        status = self.await_state("running")
        self.assertEqual(("live", 10_000_000), (status["clock"], status["pace_ps_per_wall_second"]))
        before = self.good_json("routes", "sn0-d0-h0", "sn0-d1-h0")
        self.assertEqual(["sn0-d0-h0:LR0"], [r["hops"][0]["link"] for r in before["routes"]])
        fault = self.good_json("fault", "link-down", "sn0-d0-h0/sn0-d1-h0")
        self.assertEqual(("sn0-d0-h0:LR0", "down"), (fault["link"], fault["state"]))
        self.wait_for("new routes", lambda: self.good_json("status")["epoch"] == 2)
        down = self.good_json("links", "--down")["links"]
        self.assertEqual(["sn0-d0-h0:LR0"], [link["name"] for link in down])
        after = self.good_json("routes", "sn0-d0-h0", "sn0-d1-h0")
        self.assertEqual(2, after["epoch"])
        self.assertTrue(all(len(r["hops"]) == 3 for r in after["routes"]), after)
        self.assertIn("alerts raised", self.good("counters"))
        self.assertEqual("sn0-d0-h1", self.good_json("counters", "sn0-d0-h1")["nodes"][0]["node"])
        self.assertEqual(4, len(self.good_json("counters", "--per-node")["nodes"]))
        self.impair_and_count()
        self.good("stop", "--wait")
        result = self.good_json("result")
        self.assertEqual(0, result["messages"]["failed"])
        self.assertEqual(1, len(result["reroutes"]))
        self.assertIn("state         finished", self.good("status"))

    def test_long_waits_are_said_in_wall_time_and_an_idle_fabric_can_hold(self):
        file = self.write("holding.yaml", TINY + "run: {clock: live, pace: 100us/s, idle: hold}\n")
        self.good("apply", file, "--hold")
        self.await_state("idle")
        self.assertRegex(self.good("fault", "create", "far", "--kind", "link_down",
                                   "--link", "sn0-d0-h0:LL0", "--at", "1s"),
                         r"(?m)^begins in .*s virtual \(= 2 h 46 min at 100us/s\)$")
        stood = self.await_state("idle")["virtual_ps"]
        near = ("near", "--kind", "link_down", "--link", "sn0-d0-h1:LR0", "--duration", "1us",
                "--at", f"{stood + 20_000_000}ps")
        self.assertNotIn("(= ", self.good("fault", "create", *near))
        time.sleep(0.5)  # of wall time, in which none passes
        self.assertEqual(stood, self.good_json("status")["virtual_ps"])
        faults = self.good_json("fault", "list")["faults"]
        self.assertEqual([0, 0], [fault["injections"] for fault in faults])
        self.good("step", "30us")  # that is meant, and goes over what holds
        def recovered():
            far, near = self.good_json("fault", "list")["faults"]
            return (far, near) if near["recoveries"] == 1 else None
        far, near = self.wait_for("its end", recovered)
        self.assertEqual((0, 1), (far["injections"], near["injections"]))
        self.assertIn("(= 16 min 40 s at 100us/s)", self.good("step", "100ms"))
        self.good("resume")
        self.good("fault", "delete", "far")  # a run that was stopped would wait for it
        self.good("stop", "--wait")

    def impair_and_count(self):
        self.assertRegex(self.good("fault", "link-errors", "sn0-d0-h0:LL0", "--from", "sn0-d0-h0",
                                   "--flit-rate", "0.01"),
                         r"^sn0-d0-h0:LL0: flit error rate 0\.01 at ")
        self.assertRegex(self.good("fault", "lanes", "sn0-d0-h0:LL0", "--lost", "2"),
                         r"^sn0-d0-h0:LL0, both ways: 2 lanes lost at ")
        def replayed():
            link = self.good_json("links", "sn0-d0-h0")["links"][0]
            return link if link["forward"]["replays"] > 0 else None
        link = self.wait_for("replays", replayed)
        self.assertEqual((0, 2, 2), (link["backward"]["replays"], link["forward"]["lanes_lost"],
                                     link["backward"]["lanes_lost"]))
        self.assertIn("up -2/-2 lanes", self.good("links"))
        vcs = self.good_json("counters", "sn0-d0-h0", "--vc")["nodes"][0]["vcs"]
        self.assertTrue(all(vc["most_held"] > 0 for vc in vcs if vc["port"] == "LL0"), vcs)
        self.assertRegex(self.good("counters", "sn0-d0-h0", "--vc"), r"(?m)^LL0 +0 ")
        self.assertEqual(USAGE, self.ctl("counters", "--vc").returncode)

    def test_wrong_names_and_times_are_answered_with_what_would_be_right(self):
        self.good("apply", self.write("tiny.yaml", TINY), "--hold")
        self.await_state("idle")
        for arguments, message in (
                (("fault", "link-down", "sn0-d0-h0:LL9"), ".*sn0-d0-h0:LL9"),
                (("fault", "link-down", "nonsense"), ".*nonsense"),
                (("fault", "link-down", "sn0-d0-h0:LL0", "--at", "1ps"),
                 r"fault link_down: at 1 ?ps is in the past: virtual time is "),
                (("fault", "lanes", "sn0-d0-h0:LL0", "--lost", "65"),
                 r"fault lane_loss: 65 lanes, but sn0-d0-h0:LL0, which it selects, has 64 \+ 0 "),
                (("fault", "link-errors", "sn0-d0-h0:LL0", "--from", "sn0-d1-h0", "--corrupt-next",
                  "1"), r"sn0-d1-h0 is not an end of sn0-d0-h0:LL0; "),
                (("routes", "sn0-d0-h0", "sn0-d7-h0"), ".*sn0-d7-h0"),
                (("counters", "sn9-d0-h0"), ".*sn9-d0-h0"),
                (("links", "sn0-d0-h9"), ".*sn0-d0-h9"),
                (("result", "--run", "77"), ".*77")):
            done = self.ctl(*arguments)
            self.assertIn(done.returncode, (FAILED, BAD_INPUT), done.stderr)
            self.assertRegex(done.stderr, rf"^percsctl {arguments[0]}: {message}")
        done = self.ctl("fault", "link-down", "sn0-d0-h0:LL0", "--at", "5")
        self.assertEqual((USAGE, "percsctl fault: --at: 5 needs a unit, for example 5us\n"),
                         (done.returncode, done.stderr))
        self.good("fault", "link-down", "sn0-d0-h0:LL0")
        self.good("stop", "--wait")

    def test_a_deadlock_over_daemons_is_reported_and_the_fabric_lives_on(self):
        done = self.ctl("apply", self.write("stuck.yaml", DEADLOCKING), "--wait")
        self.assertEqual(DEADLOCK, done.returncode, done.stderr)
        self.assertIn("wait-for cycle: ", done.stderr)
        self.assertEqual("failed", self.good_json("status")["state"])
        self.good("apply", self.write("tiny.yaml", TINY), "--wait")

    def test_a_traced_packet_is_told_hop_by_hop_alike_in_process_and_over_daemons(self):
        file = self.write("tiny.yaml", TINY)
        chosen = ("--from", "sn0-d0-h0", "--to", "sn0-d1-h1", "--packet", "2", "--count", "2")
        here = self.good_json("trace", file, *chosen)
        self.assertEqual(2, len(here["packets"]))
        for packet in here["packets"]:
            self.assertEqual(["sn0-d0-h0", "sn0-d1-h1"], [hop["node"] for hop in packet["hops"]])
            self.assertEqual(["sn0-d1-h1"], [d["node"] for d in packet["deliveries"]])
            for hop in packet["hops"]:
                at = hop["arrived_ps"]
                for grant in hop["grants"]:
                    self.assertEqual(grant["at_ps"], at + sum(grant["waited_ps"].values()))
                    at = grant["until_ps"]
        self.assertTrue(any(grant["waited_ps"].get("arbitration") for packet in here["packets"]
                            for hop in packet["hops"] for grant in hop["grants"]))
        there = self.good_json("trace", file, "--apply", *chosen)
        self.assertEqual(here, there)
        text = self.good("trace", file, *chosen)
        self.assertRegex(text, r"(?m)^  sn0-d0-h0 +HFI")
        self.assertIn("arbitration", text)
        for code, message, arguments in (
                (BAD_INPUT, 'no hub is named "sn0-d9-h0"', ("--from", "sn0-d9-h0")),
                (FAILED, "no packet matched", (*chosen[:4], "--packet", "9999"))):
            done = self.ctl("trace", file, *arguments)
            self.assertEqual(code, done.returncode)
            self.assertIn(message, done.stderr)

    def test_packets_of_a_running_fabric_can_be_followed(self):
        self.good("apply", self.write("endless.yaml", ENDLESS), "--hold")
        for count in (1, 2):
            packets = self.good_json("trace", "--to", "sn0-d1-h0", "--count", count)["packets"]
            self.assertGreaterEqual(len(packets), count)
            self.assertTrue(all(p["destination"] == "sn0-d1-h0" for p in packets))
            self.assertTrue(any(p["deliveries"] for p in packets))
        self.good("step", "1us", "--wait")
        self.bad(FAILED, "percsctl trace: no packet moves: virtual time is paused; continue it "
                 "with `percsctl resume` or `percsctl step`", "trace", "--from", "sn0-d1-h0",
                 "--packet", 1000000, "--timeout", "wall:50ms")
        self.good("resume")
        self.good("stop", "--wait")

    def test_nothing_applied_yet(self):
        done = self.ctl("links")
        self.assertEqual(FAILED, done.returncode)
        self.assertRegex(done.stderr, "^percsctl links: no scenario is applied")
        self.assertIn("scenario      none; `percsctl apply FILE` starts one", self.good("status"))


if __name__ == "__main__":
    unittest.main()
