"""Chaos: everything that can break breaks at random, under traffic, with real processes.

Method: actions drawn from a seed, bounded in number (more with --full): faults of every kind with
random places and durations; freezes, broken streams and kills of processes, of the controller too.
First without losses, where the fabric has to heal completely and every message has to be accounted
for; then with daemons killed and started again. Each run's journal has to replay to its digest,
in one process. Of each kind its trace has to be there (packets that died at its places, replays,
reroutes that answer it, ...), and messages that were in flight when it came; both are counted.
"""

import collections
import json
import os
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from tests.support.fabric import Fabric, percsctl, percsctl_json  # noqa: E402
from tests.support.unix_proxy import UnixProxy, descriptors, resident_kib  # noqa: E402

SEED = int(os.environ.get("PERCS_SEED", "1"))
FULL = os.environ.get("PERCS_FULL") == "1"
ROUNDS = 12 if FULL else 3
DAEMONS = 6
LOST_MAX = 3

SCENARIO = """
name: chaos
seed: 11
topology: {supernodes: 2, drawers: 2, hubs: 3, d_links_per_pair: 6}
clock: {period: 100us}
pcie:
  - {hub: sn1-d0-h2}
parameters: {detect: 1us, plan: 4us, install: 4us, retransmit_timeout: 10us, retransmit_tries: 4}
service: {probe_rounds: PROBES, probe_period: 20us}
trees:
  - {name: world, members: all}
  - {name: one, members: sn1}
workload:
  cau: {steps: "allreduce, multicast, barrier", iterations: 1000000000, operation: sum,
        type: double, operands: 4, in_flight: 2, compute_max: 4us}
  background: {pattern: uniform, load: 0.02, reliable: true, payload: verified}
"""
PROBES = 400  # rounds, which find swapped cables; a run that is stopped does the rest, in seconds
# From the first time a packet is sent to the end of its last try: 10 us, doubled four times.
PATIENCE_PS = 310_000_000
OUTAGE = "200us"  # longer than all tries are apart, so messages fail
DRAWS = 250  # of each hub, from one counter
SAVES = 80   # to a device, of 131 us each while it is there
RDMA_SCENARIO = """
name: chaos-rdma
seed: 12
topology: {supernodes: 2, drawers: 2, hubs: 3, d_links_per_pair: 6}
clock: {period: 100us}
pcie:
  - {hub: sn1-d0-h2, lanes: 1}
parameters: {detect: 1us, plan: 4us, install: 4us, retransmit_timeout: 10us, retransmit_tries: 13}
workload:
  windows:
  - name: counter
    hub: sn1-d1-h2
    steps:
    - reserve: {window: 0}
    - register: {address: 16MiB, bytes: 4KiB}
    - await: {until: 90ms}
    - check: {address: 16MiB, number: DRAWN}
  - name: target
    hub: sn1-d0-h1
    steps:
    - reserve: {window: 1}
    - register: {address: 16MiB, bytes: 64KiB}
    - await: {until: 90ms}
    - check: {address: 16MiB, bytes: 64KiB, pattern: 7}
  - name: disk  # unplugged again and again: it keeps its bytes, and does nothing late
    hub: sn1-d0-h2
    steps:
    - reserve: {window: 2}
    - register: {address: 1GiB, bytes: 1MiB, device: 0}
    - write: {address: 1GiB, bytes: 64KiB, pattern: 8}
    - await: {until: 95ms}
    - check: {address: 1GiB, bytes: 64KiB, pattern: 8}
    - await: {notifications: 1}
    - check: {address: 1048640KiB, bytes: 64KiB, pattern: 10}  # 1 GiB + 64 KiB
  - name: saver
    hub: sn0-d1-h1
    steps:
    - reserve: {window: 2}
    - register: {address: 16MiB, bytes: 64KiB}
    - write: {address: 16MiB, bytes: 64KiB, pattern: 9}
    - await: {until: 5us}
    - rdma_write: {hub: sn1-d0-h2, window: 2, bytes: 64KiB, there: 1048640KiB}
      expect: no_device
      or_ok: true
    - repeat: {steps: 1, times: SAVES}
    - await: {until: 90ms}
    - write: {address: 16MiB, bytes: 64KiB, pattern: 10}
    - rdma_write: {hub: sn1-d0-h2, window: 2, bytes: 64KiB, there: 1048640KiB, notify: true}
  - name: writer
    hub: sn0-d0-h0
    steps:
    - reserve: {window: 1}
    - register: {address: 16MiB, bytes: 64KiB}
    - register: {address: 32MiB, bytes: 64KiB}
    - write: {address: 16MiB, bytes: 64KiB, pattern: 7}
    - await: {until: 5us}
    - rdma_write: {hub: sn1-d0-h1, window: 1, bytes: 64KiB}
    - rdma_read: {hub: sn1-d0-h1, window: 1, bytes: 64KiB, address: 32MiB}
    - check: {address: 32MiB, bytes: 64KiB, pattern: 7}
    - repeat: {steps: 3, times: 20}
"""
DRAWER = """
  - name: drawer HUB
    hub: HUB
    steps:
    - reserve: {window: 0}
    - await: {until: 5us}
    - atomic:
        hub: sn1-d1-h2
        updates: [{size: 8, address: 16MiB, operand: 1, fetch: true}]
    - repeat: {steps: 1, times: DRAWS}
"""
HUBS = [f"sn{s}-d{d}-h{h}" for s in range(2) for d in range(2) for h in range(3)]
LINKS = [f"{hub}:{port}" for hub in HUBS for port in ("LL0", "LL1", "LR0", "LR1", "LR2", "D0")]
# Ends by which `percsctl links` names their links.
LOWER_ENDS = ["sn0-d0-h0:LL0", "sn0-d0-h0:LL1", "sn0-d0-h1:LL1"] + \
    [f"sn0-d0-h{hub}:{port}" for hub in range(3) for port in ("LR0", "LR1", "D0")]
DAMAGED_ENTRY = "sn0-d1-h2"
KINDS = {
    "link_down": ("--link", "LINK"),
    "port_down": ("--link", "LINK", "--direction", "forward"),
    "flap": ("--link", "LINK", "--period", "8us", "--repeats", "3"),
    "lane_loss": ("--link", "LINK", "--lanes", "6"),
    "bit_errors": ("--link", "LINK", "--flit-error-rate", "5e-2"),
    "corrupt_next": ("--link", "LINK", "--corrupt-next", "3"),
    "hub_down": ("--in", "HUB"),
    "partition": ("--in", "sn0-d0"),
    "table_damage": ("--in", "HUB", "--destination", DAMAGED_ENTRY),
    "alert_suppressed": ("--link", "LINK"),
    "latency": ("--link", "LINK", "--latency", "300ns"),
    "cau_down": ("--in", "HUB"),
    "hfi_down": ("--in", "HUB", "--hfi", "0"),
    "window_down": ("--in", "HUB", "--window", "0"),
    "clock_drift": ("--in", "FOLLOWER", "--drift-ppb", "10000000"),
    "miswired": ("--link", "sn0-d0-h0:D0", "--with", "sn0-d0-h1:D0"),
    "pcie_unplugged": ("--in", "sn1-d0-h2", "--pcie-port", "0"),
}
# Microseconds, drawn between these; some need a while until something meets them, or looks at them.
DURATION = (5, 30)
OBSERVED = ("lane_loss", "latency")
LONGER = dict.fromkeys(("port_down", "table_damage", "clock_drift", "miswired", "pcie_unplugged"),
                       (25, 50)) | dict.fromkeys(OBSERVED, (100, 130))
SILENCE = (120, 150)  # of alerts, while the link goes down for MUTE
MUTE = "10us"
# What all faults of a kind have to leave behind together: fields of `fault get`, or what observe()
# and others have seen. A device is missed by nobody here, but in the test of RDMA.
DIED_AND_ANSWERED = ("packets_lost", "answered")
TRACES = {
    "link_down": DIED_AND_ANSWERED,
    "port_down": ("replays", "answered"),
    "flap": ("packets_lost", "alerts"),
    "lane_loss": ("lanes_lost",),
    "bit_errors": ("replays",),
    "corrupt_next": ("replays",),
    "hub_down": DIED_AND_ANSWERED,
    "partition": DIED_AND_ANSWERED,
    "table_damage": DIED_AND_ANSWERED,
    "alert_suppressed": ("silenced",),
    "latency": ("flits_delayed",),
    "cau_down": ("packets_lost",),
    "hfi_down": ("packets_lost", "packets_resent"),
    "window_down": ("packets_lost", "packets_resent"),
    "clock_drift": ("skew_ps",),
    "miswired": ("found",),
    "pcie_unplugged": (),
}


def at_once(one, other):
    def ends(fault):
        return fault["recovered_at_ps"] or float("inf")
    return one["begins_at_ps"] <= ends(other) and other["begins_at_ps"] <= ends(one)


class ChaosTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="percs-chaos-", dir="/tmp"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.file = self.folder / "chaos.yaml"
        self.file.write_text(SCENARIO.replace("PROBES", str(PROBES)))
        self.random = random.Random(SEED)
        self.count = collections.Counter()
        self.in_flight = collections.Counter()
        self.begin()
        self.proxies = []
        self.fabric = Fabric(self.folder / "f", DAEMONS)
        self.addCleanup(self.fabric.close)
        self.fabric.start_controller()
        for place in range(DAEMONS):
            self.proxies.append(UnixProxy(*reversed(self.sockets(place))))
            self.addCleanup(self.proxies[-1].close)
            self.start_daemon(place)
        self.fabric.wait_for_state("empty")

    def sockets(self, place):
        """The daemon's own, and the proxy's that its peers are told."""
        return self.fabric.folder / f"d{place}", self.fabric.folder / f"p{place}"

    def start_daemon(self, place):
        real, shown = self.sockets(place)
        self.fabric.daemon_flags = ("--controller-timeout", 60, "--listen", f"unix:{real}",
                                    "--advertise-link", f"unix:{shown}")
        self.fabric.start_daemon(place)

    def begin(self):
        """Of every run."""
        self.faults = 0
        self.previews = {}
        self.muted = []   # (fault that suppresses alerts, fault that is not to be heard)
        self.dumps = []   # (epoch, file) of route tables
        self.traces = collections.Counter()  # (kind, trace)

    def messages(self):
        return self.fabric.json("counters")["nodes"][0]["messages"]

    def note(self, kind):
        messages = self.messages()
        self.count[kind] += 1
        self.in_flight[kind] += messages["sent"] - messages["acknowledged"] - messages["failed"]

    def living(self):
        return [p for p in self.fabric.daemons if p.poll() is None]

    def let_time_pass(self, by=5_000_000):
        start = self.fabric.status()["virtual_ps"]
        self.fabric.wait_for(lambda: (self.fabric.status() or {"virtual_ps": 0})["virtual_ps"]
                             > start + by, "time to pass")

    def break_something(self, kind):
        link = self.random.choice(LOWER_ENDS if kind in OBSERVED else LINKS)
        hub = self.random.choice([hub for hub in HUBS if hub != DAMAGED_ENTRY])
        follower = self.random.choice([hub for hub in HUBS if hub.startswith("sn1")])  # of a clock
        places = {"LINK": link, "HUB": hub, "FOLLOWER": follower}
        flags = [places.get(flag, flag) for flag in KINDS[kind]]
        self.note(kind)
        span = SILENCE if kind == "alert_suppressed" else LONGER.get(kind, DURATION)
        if kind != "corrupt_next":
            flags += ["--duration", f"{self.random.randrange(*span)}us"]
        fault = self.create(kind, *flags)
        if kind == "alert_suppressed":
            down = self.create("link_down", "--link", link, "--duration", MUTE)
            self.muted.append((fault["id"], down["id"]))
        if kind in OBSERVED:
            self.observe(fault, link, end=fault["begins_at_ps"] + span[0] * 1_000_000)
        if self.faults % 4 == 0:
            self.dump_routes()

    def create(self, kind, *flags):
        """A fault, previewed; one that others are in the way of, when they are over."""
        self.faults += 1
        what = (f"f{self.faults}", "--kind", kind, *flags)

        def created():
            self.previews[what[0]] = self.fabric.json("fault", "preview", *what)
            done = self.fabric.ctl("fault", "create", *what, "--format", "json", check=False)
            if done.returncode == 0:
                return json.loads(done.stdout)["fault"]
            self.assertIn("conflicts with fault", done.stderr)
            self.let_time_pass()
            return None
        return self.fabric.wait_for(created, f"the others to be over: {what}")

    def observe(self, fault, link, end):
        """What is on the link while the fault is: until `end` at least."""
        def directions():
            links = self.fabric.json("links", link.split(":")[0])
            there = next(found for found in links["links"] if found["name"] == link)
            return links["virtual_ps"], (there["forward"], there["backward"])
        _, before = directions()
        self.let_time_pass()
        now, after = directions()
        if now < end:
            self.traces[fault["kind"], "lanes_lost"] += sum(way["lanes_lost"] for way in after)
            self.traces[fault["kind"], "flits_delayed"] += \
                sum(way["flits"] for way in after) - sum(way["flits"] for way in before)

    def dump_routes(self):
        file = self.folder / f"routes-{len(self.dumps)}.json"
        self.fabric.ctl("routes", "dump", "--output", file)
        self.dumps.append((json.loads(file.read_text())["epoch"], file))

    def prove_routes(self, result):
        """All that were installed when somebody looked, over the links that were known to be up:
        those of the epoch that was in effect, or of the next one, which was about to be."""
        def proof(file, epoch):
            down = set()
            for reroute in result["reroutes"]:
                if reroute["epoch"] <= epoch:
                    down = (down | set(reroute["down"])) - set(reroute["up"])
            links = [flag for link in sorted(down) for flag in ("--down", link)]
            return percsctl("routes", "load", file, "--scenario", self.file, *links, check=False)
        for epoch, file in self.dumps:
            proofs = [proof(file, epoch)]
            if proofs[0].returncode != 0:
                proofs.append(proof(file, epoch + 1))
            self.assertEqual(0, proofs[-1].returncode, [done.stderr for done in proofs])
        epochs = {epoch for epoch, _ in self.dumps}
        print(f"chaos: route tables of {len(epochs)} of {len(result['reroutes'])} epochs proven")
        self.assertGreater(len(epochs), 1)

    def freeze(self):
        victim = self.random.choice(self.living())
        self.note("freeze")
        victim.send_signal(signal.SIGSTOP)
        time.sleep(self.random.uniform(0.05, 0.3))  # of wall time, which is what is tested
        victim.send_signal(signal.SIGCONT)

    def break_streams(self):
        if sum(proxy.break_all() for proxy in self.random.sample(self.proxies, 3)) > 0:
            self.note("stream_break")

    def kill_controller(self):
        self.note("controller_kill")
        self.fabric.controller.kill()
        self.fabric.controller.wait()
        self.fabric.start_controller()
        self.fabric.wait_for(lambda: self.fabric.status() is not None, "the next controller")

    def kill_daemon(self):
        victim = self.random.choice(self.living())
        self.note("daemon_kill")
        victim.kill()
        victim.wait()
        self.fabric.wait_for(lambda: len((self.fabric.status() or {"processes": [0] * 99})
                                         ["processes"]) == len(self.living()), "the loss")
        return self.fabric.daemons.index(victim)

    def kill_daemon_and_start_it_again(self):
        def back():
            return self.fabric.ctl("events", check=False).stdout.count("daemon_rejoined")
        before = back()
        place = self.kill_daemon()
        self.let_time_pass()
        self.note("daemon_rejoin")
        self.start_daemon(place)
        self.fabric.wait_for(lambda: back() > before, "it to rejoin")

    def shake(self, actions):
        for action in actions:
            action()
            self.let_time_pass()

    def actions(self, rounds):
        all_of = [lambda kind=kind: self.break_something(kind) for kind in KINDS] * rounds
        all_of += [self.freeze, self.break_streams, self.kill_controller] * rounds
        self.random.shuffle(all_of)
        return all_of

    def end(self):
        self.fabric.ctl("stop")
        result = self.fabric.result()
        self.assertEqual([], result["violations"])
        replayed = percsctl_json("replay", self.fabric.state)
        self.assertEqual(result["digest"], replayed["digest"], f"seed {SEED}")
        return result

    def end_faults(self):
        """When they are over; those that never are have to be deleted. Returns what these cost,
        the others are in the report of the run."""
        def listed():
            return self.fabric.json("fault", "list")["faults"]
        self.fabric.wait_for(lambda: all(fault["phase"] == "recovered" for fault in listed()
                                         if fault["kind"] != "corrupt_next"), "faults to be over")
        endless = []
        for fault in listed():
            if fault["kind"] == "corrupt_next":
                endless += self.fabric.json("fault", "get", fault["id"])["faults"]
                self.fabric.ctl("fault", "delete", fault["id"])
        return endless

    def check_conditions(self, faults):
        self.assertEqual(self.faults, len(faults))
        for fault in faults:
            self.assertGreaterEqual(fault["injections"], 1, fault)
            self.assertGreaterEqual(fault["injected_at_ps"], fault["selected_at_ps"], fault)
            if fault["kind"] == "corrupt_next":  # until it is deleted
                self.assertEqual((1, 0), (fault["injections"], fault["recoveries"]), fault)
                continue
            self.assertEqual(fault["injections"], fault["recoveries"], fault)
            self.assertGreater(fault["recovered_at_ps"], fault["injected_at_ps"], fault)

    def compare_with_previews(self, faults):
        """Places, and whether packets are lost. Pairs and trees of one fault, whose tables stay as
        they were when it was previewed, are compared in fault_preview_test."""
        for fault in faults:
            preview = self.previews[fault["id"]]
            self.assertEqual(set(fault["targets"]), set(preview["targets"]), fault)
            self.assertEqual(preview["selected"], fault["selected"], fault)
            self.assertEqual(preview["seed"], fault["seed"], fault)
            if fault["packets_lost"]:  # what two faults on one place cost counts for both
                self.assertTrue(any(self.previews[other["id"]]["loses_packets"]
                                    for other in faults if at_once(fault, other)), fault)
            if preview["pairs"]:
                self.assertTrue(preview["jobs"] and preview["routes"], preview)

    def check_traces(self, faults, result, events):
        """Of each kind, over all its faults: that it met something."""
        by_id = {fault["id"]: fault for fault in faults}
        for fault in faults:
            for name in ("packets_lost", "packets_resent", "replays"):
                self.traces[fault["kind"], name] += fault[name]
            heard = fault["detected_at_ps"]  # the first time since it began
            self.traces[fault["kind"], "answered"] += \
                heard is not None and heard <= (fault["recovered_at_ps"] or heard)
            self.traces[fault["kind"], "alerts"] += sum(
                event["kind"] == "alert" and event["subject"] in fault["targets"] and
                fault["begins_at_ps"] < event["at_ps"] <= (fault["recovered_at_ps"] or 0)
                for event in events)
        for deaf, down in ((by_id[a], by_id[b]) for a, b in self.muted):
            if down["recovered_at_ps"] < deaf["recovered_at_ps"]:
                self.traces["alert_suppressed", "silenced"] += 1
                heard = down["detected_at_ps"]  # later, it is of another fault
                self.assertTrue(heard is None or heard > down["recovered_at_ps"], (deaf, down))
        self.traces["miswired", "found"] = sum(event["kind"] == "miswired" for event in events)
        clock = result["clock"]  # what only a broken oscillator can do
        self.traces["clock_drift", "skew_ps"] = max(
            0, clock["skew_max_ever_ps"] - 2 * clock["bound_ps"])
        print("chaos: " + "; ".join(f"{kind} " + ", ".join(
            f"{name} {self.traces[kind, name]}" for name in names)
            for kind, names in TRACES.items() if names))
        for kind, names in TRACES.items():
            for name in names:
                self.assertGreater(self.traces[kind, name], 0, f"{kind} left no {name}")
        trees = {tree for preview in self.previews.values() for tree in preview["trees"]}
        repaired = {tree["name"] for tree in result["trees"] if tree["repairs"]}
        self.assertLessEqual(repaired, trees)

    def check_failures(self, result, faults):
        """Each message that failed has a reason, which is true."""
        def at_fault(message, fault):
            at = message["at_ns"] * 1000
            over = fault["recovered_at_ps"]
            if fault["begins_at_ps"] > at or (over is not None and over < at - PATIENCE_PS):
                return False
            ends = [message["source"], message["destination"]]
            if message["reason"] == "window_down":
                return fault["kind"] in ("window_down", "hfi_down") and ends[0] in fault["targets"]
            preview = self.previews[fault["id"]]
            pairs = preview["pair_names"]
            return bool(set(ends) & set(fault["targets"])) or len(pairs) < preview["pairs"] or \
                bool({" to ".join(ends), " to ".join(reversed(ends))} & set(pairs))

        def without_a_way(message):
            """Between the last try and now, tables led nowhere from some hubs."""
            at = message["at_ns"]
            routes = [r for r in result["reroutes"] if r["committed_ns"] <= at]
            recent = [r for r in routes[:-1] if r["committed_ns"] >= at - PATIENCE_PS / 1000]
            return any(r["unreachable_pairs"] > 0 for r in routes[-1:] + recent)

        def with_the_lost(message):
            at = message["at_ns"] * 1000
            ends = (message["source"], message["destination"])
            return any(HUBS[node] in ends and lost["at_ps"] <= at
                       for lost in result["lost"] for node in lost["nodes"])
        reasons = collections.Counter(message["reason"] for message in result["failed_messages"])
        print(f"chaos: failed messages: {dict(reasons)}")
        for message in result["failed_messages"]:
            if message["reason"] == "old_incarnation":
                self.assertTrue(with_the_lost(message), message)
                continue
            if message["reason"] == "no_route":
                self.assertTrue(without_a_way(message), message)
                continue
            self.assertIn(message["reason"], ("unacknowledged", "window_down"))
            self.assertTrue(with_the_lost(message) or
                            any(at_fault(message, fault) for fault in faults), message)

    def check_messages(self, result, faults):
        """Those of hubs that were not lost."""
        messages = result["messages"]
        self.assertEqual(messages["sent"], messages["acknowledged"] + messages["failed"])
        self.assertEqual(messages["failed"], len(result["failed_messages"]))
        self.assertGreater(messages["failed"], 0)
        self.assertEqual(0, messages["payload_errors"])
        if not result["lost"]:
            self.assertGreaterEqual(messages["delivered"], messages["acknowledged"])
            self.assertLessEqual(messages["delivered"], messages["sent"])
        self.check_failures(result, faults)

    def check_counts(self, kinds):
        print(f"chaos, seed {SEED}: " + ", ".join(
            f"{kind} {self.count[kind]} ({self.in_flight[kind]} in flight)" for kind in kinds))
        for kind in kinds:
            self.assertGreaterEqual(self.count[kind], 3, kind)
            self.assertGreater(self.in_flight[kind], 0, f"no message was in flight at {kind}")

    def check_operations_of_caus(self, result):
        """Each ended right, or failed with a reason and was done again."""
        tasks = result["cau_tasks"]
        print(f"chaos: {sum(task['steps_right'] for task in tasks)} operations of CAUs right, "
              f"{sum(task['steps_failed'] for task in tasks)} failed and done again")
        for task in tasks:
            self.assertEqual(0, task["steps_wrong"], task)
            self.assertGreater(task["steps_right"], 0, task)
            self.assertTrue(task["reason"] or task["steps_failed"] == 0, task)

    def sizes(self):
        """(resident KiB, descriptors) of every process, by its place."""
        processes = {"controller": self.fabric.controller} | dict(enumerate(self.fabric.daemons))
        return {name: (resident_kib(process.pid), descriptors(process.pid))
                for name, process in processes.items()}

    def check_sizes(self, before):
        """Since the middle of the run. What is kept for people is bounded, but not full then: the
        controller's events (4,096 of some 300 bytes) and, of each of its faults and reroutes, a
        few kilobytes: 4 MiB hold both. The rest is what an allocator keeps."""
        for name, (memory, files) in self.sizes().items():
            self.assertLess(memory, before[name][0] * 1.3 + 4096, f"memory of {name} grows")
            self.assertLess(files, before[name][1] + 8, f"descriptors of {name} leak")

    def events(self):
        lines = self.fabric.ctl("events", "--format", "json").stdout.splitlines()
        return [json.loads(line) for line in lines]

    def test_everything_breaks_and_heals_and_then_daemons_are_lost_and_come_back(self):
        self.fabric.ctl("apply", self.file, "--hold")
        self.let_time_pass()
        self.create("window_down", "--in", self.random.choice(HUBS), "--window", "0",
                    "--duration", OUTAGE)
        actions = self.actions(ROUNDS)
        middle = len(actions) // 2
        self.shake(actions[:middle])
        sizes = self.sizes()
        self.shake(actions[middle:])
        self.check_sizes(sizes)
        endless = self.end_faults()
        self.fabric.wait_for(lambda: self.messages()["failed"] > 0, "messages to fail")
        self.fabric.wait_for(lambda: self.fabric.json("health")["healthy"], "it to heal")
        self.dump_routes()
        healed = self.dumps[-1][1]
        events = self.events()
        kinds = collections.Counter(event["kind"] for event in events)
        self.assertEqual(0, kinds["plan_refused"])
        self.assertEqual(0, kinds["gap"], "events are missing")
        self.assertEqual(kinds["fault_injected"], kinds["fault_recovered"])
        result = self.end()
        faults = result["faults"] + endless
        self.check_conditions(faults)
        self.compare_with_previews(faults)
        self.prove_routes(result)
        planned = self.folder / "planned.json"
        percsctl("routes", "dump", self.file, "--output", planned)
        percsctl("routes", "diff", planned, healed)
        self.check_messages(result, faults)
        self.check_operations_of_caus(result)
        self.check_traces(faults[1:], result, events)  # not that of OUTAGE
        self.check_counts([*KINDS, "freeze", "stream_break", "controller_kill"])
        self.lose_daemons()

    def lose_daemons(self):
        self.begin()
        self.fabric.ctl("apply", self.file, "--hold")
        self.let_time_pass()
        actions = [self.kill_daemon_and_start_it_again] * LOST_MAX + \
            [self.kill_controller, self.break_streams, self.freeze] + \
            [lambda kind=kind: self.break_something(kind) for kind in KINDS]
        self.random.shuffle(actions)
        self.shake(actions)
        endless = self.end_faults()
        self.fabric.wait_for(lambda: self.fabric.json("health")["unreachable_pairs"] == 0,
                             "routes to all")
        self.kill_daemon()
        self.let_time_pass()
        result = self.end()
        faults = result["faults"] + endless
        self.compare_with_previews(faults)
        self.assertEqual(LOST_MAX, len(result["rejoined"]))
        self.assertEqual(LOST_MAX + 1, len(result["lost"]))
        self.prove_routes(result)
        self.check_messages(result, faults)
        self.check_operations_of_caus(result)
        self.check_counts(["daemon_kill", "daemon_rejoin"])

    def test_rdma_and_atomics_are_done_exactly_once_whatever_breaks(self):
        hubs = HUBS[:-1]  # the last one has the counter
        text = RDMA_SCENARIO.replace("DRAWN", str(DRAWS * len(hubs))).replace("SAVES", str(SAVES))
        for hub in hubs:
            text += DRAWER.replace("HUB", hub).replace("DRAWS", str(DRAWS)).lstrip("\n")
        self.file.write_text(text)
        self.fabric.ctl("apply", self.file, "--hold")
        self.let_time_pass()
        self.shake(self.actions(1))
        self.assertGreater(self.fabric.status()["unfinished"], 0, "all was over before it")
        endless = self.end_faults()
        self.fabric.wait_for_state("idle")
        kept = self.folder / "checkpoint"
        self.fabric.ctl("checkpoint", kept, "--journal", self.fabric.state)
        result = self.end()
        faults = result["faults"] + endless
        self.check_conditions(faults)
        self.compare_with_previews(faults)
        for program in result["window_programs"]:
            self.assertEqual(0, program["wrong"], program)
        # Daemons do not tell what their PCI Express ports counted; the same run in process does.
        refused = sum(port["refused"] for port in percsctl_json("restore", kept)["pcie"])
        print("chaos: {} packets sent again, {} dropped, {} refused for want of a device".format(
            result["messages"]["packets_resent"], sum(result["drops"].values()), refused))
        self.assertGreater(result["messages"]["packets_resent"], 0)
        self.assertGreater(refused, 0, "nobody missed the device")


if __name__ == "__main__":
    unittest.main()
