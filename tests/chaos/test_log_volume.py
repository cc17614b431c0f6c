"""What 33 processes write while everything breaks: less than 50 MiB in ten minutes.

Method: the chaos of test_chaos.py over 32 daemons and their controller, with everything at its
default level; in each run faults of every kind, a freeze, a daemon killed and started again, a
controller killed. The bytes of all logs, counted over a minute and a half, are scaled to ten
minutes. Only under --full.
"""

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
sys.path.insert(0, str(ROOT / "tests" / "chaos"))
import test_chaos  # noqa: E402
from tests.support.fabric import Fabric  # noqa: E402

SEED = int(os.environ.get("PERCS_SEED", "1"))
DAEMONS = 32
WATCH_SECONDS = float(os.environ.get("PERCS_LOG_SECONDS", "90"))
TEN_MINUTES = 600
BYTES_MAX = 50 * 1024 * 1024
SCENARIO = """
name: talkative
seed: 3
topology: {supernodes: 2, drawers: 4, hubs: 4, d_links_per_pair: 32}
clock: {period: 100us}
parameters: {detect: 1us, plan: 4us, install: 4us, retransmit_timeout: 10us}
trees:
  - {name: world, members: all}
pcie:
  - {hub: sn1-d0-h2}
workload:
  pattern: {pattern: uniform, load: 0.02, reliable: true, payload: verified}
"""
HUBS = [f"sn{s}-d{d}-h{h}" for s in range(2) for d in range(4) for h in range(4)]
LINKS = [f"{hub}:{port}" for hub in HUBS for port in ("LL0", "LL1", "LR0", "LR1", "LR2", "D0")]
# Where every hub is a process, cables can only be swapped among those that share links.
KINDS = dict(test_chaos.KINDS, miswired=("--link", "sn0-d0-h0:D0", "--with", "sn0-d0-h0:D1"))


@unittest.skipUnless(os.environ.get("PERCS_FULL") == "1", "takes a minute and a half: --full")
class LogVolumeTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="percs-logs-", dir="/tmp"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.random = random.Random(SEED)
        self.fabric = Fabric(self.folder / "f", DAEMONS)
        self.addCleanup(self.fabric.close)
        self.done, self.refused, self.faults = {}, {}, 0

    def log_bytes(self):
        return sum(log.stat().st_size for log in self.fabric.folder.glob("*.log"))

    def connected(self):
        status = self.fabric.status()
        return status and sum(process["connected"] for process in status["processes"])

    def let_time_pass(self, by=2_000_000):
        start = self.fabric.status()["virtual_ps"]
        self.fabric.wait_for(lambda: (self.fabric.status() or {"virtual_ps": 0})["virtual_ps"]
                             > start + by, "time to pass")

    def break_something(self, kind):
        places = {"LINK": self.random.choice(LINKS), "HUB": self.random.choice(HUBS),
                  "FOLLOWER": self.random.choice(HUBS[1:])}
        flags = [places.get(flag, flag) for flag in KINDS[kind]]
        if kind != "corrupt_next":
            flags += ["--duration", f"{self.random.randrange(5, 30)}us"]
        self.faults += 1
        created = self.fabric.ctl("fault", "create", f"f{self.faults}", "--kind", kind, *flags,
                                  check=False)
        self.refused[kind] = created.stderr
        return created.returncode == 0

    def freeze(self):
        victim = self.random.choice(self.fabric.daemons)
        victim.send_signal(signal.SIGSTOP)
        time.sleep(0.1)  # of wall time, which is what is tested
        victim.send_signal(signal.SIGCONT)
        return True

    def kill_daemon(self):
        place = self.random.randrange(DAEMONS)
        self.fabric.daemons[place].kill()
        self.fabric.daemons[place].wait()
        self.fabric.wait_for(lambda: len((self.fabric.status() or {"processes": [0] * DAEMONS})
                                         ["processes"]) < DAEMONS, "the loss")
        self.fabric.start_daemon(place)
        return True

    def kill_controller(self):
        self.fabric.controller.kill()
        self.fabric.controller.wait()
        self.fabric.start_controller()
        self.fabric.wait_for(lambda: self.fabric.status() is not None, "the next controller")
        return True

    def test_ten_minutes_of_chaos_write_less_than_fifty_mebibytes(self):
        self.fabric.open()
        self.fabric.wait_for_state("empty")
        file = self.folder / "talkative.yaml"
        file.write_text(SCENARIO)
        actions = {kind: lambda kind=kind: self.break_something(kind) for kind in KINDS}
        actions |= {"freeze": self.freeze, "daemon_kill": self.kill_daemon,
                    "controller_kill": self.kill_controller}
        before, start = self.log_bytes(), time.monotonic()
        while time.monotonic() < start + WATCH_SECONDS:
            self.fabric.wait_for(lambda: self.connected() == DAEMONS, "all daemons")
            self.fabric.ctl("apply", file, "--hold")
            for name in self.random.sample(list(actions), len(actions)):
                if actions[name]():
                    self.done[name] = self.done.get(name, 0) + 1
                self.let_time_pass()
            self.fabric.ctl("stop")
            self.assertEqual([], self.fabric.result()["violations"])
        written, took = self.log_bytes() - before, time.monotonic() - start
        scaled = written * TEN_MINUTES / took
        print(f"{self.fabric.started} processes wrote {written} bytes in {took:.0f} s: "
              f"{scaled / 2**20:.2f} MiB in ten minutes; {sum(self.done.values())} actions: "
              + ", ".join(f"{name} {count}" for name, count in sorted(self.done.items())))
        self.assertEqual(set(actions), set(self.done), self.refused)
        self.assertGreater(written, 1000)
        self.assertLess(scaled, BYTES_MAX)


if __name__ == "__main__":
    unittest.main()
