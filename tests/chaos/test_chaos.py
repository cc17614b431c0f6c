"""Chaos: everything that can break breaks at random, under traffic, with real processes.

Method: actions drawn from a seed, bounded in number (more with --full): faults of every kind with
random places and durations; freezes, broken streams and kills of processes, of the controller too.
First without losses, where the fabric has to heal completely and every message has to be accounted
for; then with daemons killed and started again. Each run's journal has to replay to its digest,
in one process. The report counts each kind, and what was in flight when it came.
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
from tests.support.fabric import Fabric, percsctl_json  # noqa: E402
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
parameters: {detect: 1us, plan: 4us, install: 4us, retransmit_timeout: 10us}
trees:
  - {name: world, members: all}
workload:
  cau: {steps: "allreduce, multicast, barrier", iterations: 1000000000, operation: sum,
        type: double, operands: 4, in_flight: 2, compute_max: 4us}
  background: {pattern: uniform, load: 0.02, reliable: true, payload: verified}
"""
DRAWS = 250  # of each hub, from one counter
SAVES = 40   # to a device, of 131 us each while it is there
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
DAMAGED_ENTRY = "sn0-d1-h2"
KINDS = {
    "link_down": ("--link", "LINK"),
    "port_down": ("--link", "LINK", "--direction", "forward"),
    "flap": ("--link", "LINK", "--period", "8us", "--repeats", "3"),
    "lane_loss": ("--link", "LINK", "--lanes", "8"),
    "bit_errors": ("--link", "LINK", "--flit-error-rate", "1e-2"),
    "corrupt_next": ("--link", "LINK", "--corrupt-next", "3"),
    "hub_down": ("--in", "HUB"),
    "partition": ("--in", "sn0-d0"),
    "table_damage": ("--in", "HUB", "--destination", DAMAGED_ENTRY),
    "alert_suppressed": ("--link", "LINK"),
    "latency": ("--link", "LINK", "--latency", "300ns"),
    "cau_down": ("--in", "HUB"),
    "hfi_down": ("--in", "HUB", "--hfi", "0"),
    "window_down": ("--in", "HUB", "--window", "0"),
    "clock_drift": ("--in", "HUB", "--drift-ppb", "20000"),
    "miswired": ("--link", "sn0-d0-h0:D0", "--with", "sn0-d0-h1:D0"),
    "pcie_unplugged": ("--in", "sn1-d0-h2", "--pcie-port", "0"),
}


class ChaosTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="percs-chaos-", dir="/tmp"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.file = self.folder / "chaos.yaml"
        self.file.write_text(SCENARIO)
        self.random = random.Random(SEED)
        self.count = collections.Counter()
        self.in_flight = collections.Counter()
        self.faults = 0
        self.previews = {}
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

    def note(self, kind):
        status = self.fabric.status()
        self.count[kind] += 1
        self.in_flight[kind] += abs(status["unfinished"]) if status else 0

    def living(self):
        return [p for p in self.fabric.daemons if p.poll() is None]

    def let_time_pass(self, by=5_000_000):
        start = self.fabric.status()["virtual_ps"]
        self.fabric.wait_for(lambda: (self.fabric.status() or {"virtual_ps": 0})["virtual_ps"]
                             > start + by, "time to pass")

    def break_something(self, kind):
        """A fault of this kind; one that others are in the way of, when they are over."""
        link = self.random.choice(LINKS)
        hub = self.random.choice([hub for hub in HUBS if hub != DAMAGED_ENTRY])
        flags = [{"LINK": link, "HUB": hub}.get(flag, flag) for flag in KINDS[kind]]
        self.faults += 1
        self.note(kind)
        if kind != "corrupt_next":
            flags += ["--duration", f"{self.random.randrange(5, 30)}us"]
        what = (f"f{self.faults}", "--kind", kind, *flags)
        create = ("fault", "create", *what)
        for _ in range(10):
            self.previews[what[0]] = self.fabric.json("fault", "preview", *what)
            created = self.fabric.ctl(*create, check=False)
            if created.returncode == 0:
                return
            self.assertIn("conflicts with fault", created.stderr)
            self.let_time_pass()
        self.fail(f"{create}: {created.stderr}")

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
        self.random.shuffle(actions)
        for action in actions:
            action()
            self.let_time_pass()

    def actions(self, rounds):
        all_of = [lambda kind=kind: self.break_something(kind) for kind in KINDS] * rounds
        return all_of + [self.freeze, self.break_streams, self.kill_controller] * rounds

    def end(self):
        self.fabric.ctl("stop")
        result = self.fabric.result()
        self.assertEqual([], result["violations"])
        replayed = percsctl_json("replay", self.fabric.state)
        self.assertEqual(result["digest"], replayed["digest"], f"seed {SEED}")
        return result

    def compare_with_previews(self):
        """Nothing was touched that the preview had not said."""
        faults = self.fabric.json("fault", "list")["faults"]
        self.assertGreaterEqual(len(faults), len(KINDS))
        for fault in faults:
            preview = self.previews[fault["id"]]
            self.assertLessEqual(set(fault["targets"]), set(preview["targets"]), fault)
            self.assertEqual(preview["selected"], fault["selected"], fault)
            self.assertEqual(preview["seed"], fault["seed"], fault)
            if fault["packets_lost"]:
                self.assertTrue(preview["loses_packets"], fault)
                self.assertTrue(preview["pairs"] or preview["windows"], (fault, preview))

    def check_counts(self, kinds):
        print(f"chaos, seed {SEED}: " + ", ".join(
            f"{kind} {self.count[kind]} ({self.in_flight[kind]} in flight)" for kind in kinds))
        for kind in kinds:
            self.assertGreaterEqual(self.count[kind], 3, kind)
            self.assertGreater(self.in_flight[kind], 0, f"{kind} touched nothing")

    def check_operations_of_caus(self, result):
        """Each ended right, or failed with a reason and was done again."""
        tasks = result["cau_tasks"]
        print(f"chaos: {sum(task['steps_right'] for task in tasks)} operations of CAUs right, "
              f"{sum(task['steps_failed'] for task in tasks)} failed and done again")
        for task in tasks:
            self.assertEqual(0, task["steps_wrong"], task)
            self.assertGreater(task["steps_right"], 0, task)
            self.assertTrue(task["reason"] or task["steps_failed"] == 0, task)

    def test_everything_breaks_and_heals_and_then_daemons_are_lost_and_come_back(self):
        self.fabric.ctl("apply", self.file, "--hold")
        self.let_time_pass()
        self.shake(self.actions(ROUNDS - 1))
        sizes = {p.pid: (resident_kib(p.pid), descriptors(p.pid)) for p in self.living()}
        self.shake(self.actions(1))
        for process in self.living():
            memory, files = sizes[process.pid]
            self.assertLess(resident_kib(process.pid), memory * 1.3 + 4096, "memory grows")
            self.assertLess(descriptors(process.pid), files + 8, "descriptors leak")
        self.compare_with_previews()
        self.fabric.ctl("fault", "reset")
        self.fabric.wait_for(lambda: self.fabric.json("health")["healthy"], "it to heal")
        self.assertNotIn("plan_refused", self.fabric.ctl("events").stdout)
        result = self.end()
        messages = result["messages"]
        self.assertEqual(messages["sent"], messages["acknowledged"] + messages["failed"])
        self.assertGreaterEqual(messages["delivered"], messages["acknowledged"])
        self.assertLessEqual(messages["delivered"], messages["sent"])
        self.assertEqual(0, messages["payload_errors"])
        self.check_operations_of_caus(result)
        self.check_counts([*KINDS, "freeze", "stream_break", "controller_kill"])

        self.fabric.ctl("apply", self.file, "--hold")
        self.let_time_pass()
        self.shake([self.kill_daemon_and_start_it_again] * LOST_MAX +
                   [self.kill_controller, self.break_streams, self.freeze] +
                   [lambda kind=kind: self.break_something(kind) for kind in KINDS])
        self.compare_with_previews()
        self.fabric.ctl("fault", "reset")
        self.fabric.wait_for(lambda: self.fabric.json("health")["unreachable_pairs"] == 0,
                             "routes to all")
        self.kill_daemon()
        self.let_time_pass()
        result = self.end()
        self.assertEqual(LOST_MAX, len(result["rejoined"]))
        self.assertEqual(LOST_MAX + 1, len(result["lost"]))
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
        self.shake([lambda kind=kind: self.break_something(kind) for kind in KINDS] +
                   [self.freeze, self.break_streams, self.kill_controller])
        self.assertGreater(self.fabric.status()["unfinished"], 0, "all was over before it")
        self.compare_with_previews()
        self.fabric.ctl("fault", "reset")
        self.fabric.wait_for_state("idle")
        result = self.end()
        for program in result["window_programs"]:
            self.assertEqual(0, program["wrong"], program)
        print("chaos: {} packets sent again, {} dropped".format(
            result["messages"]["packets_resent"], sum(result["drops"].values())))
        self.assertGreater(result["messages"]["packets_resent"], 0)


if __name__ == "__main__":
    unittest.main()
