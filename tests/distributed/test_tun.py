"""Programs that know nothing of windows, over the emulated fabric.

Method: a `percsctl tun` at a hub of one percsd, and another percsd with `--tun`, each in a network
namespace of its own; `ping` and `nc` run there over the kernel's own ICMP and TCP. The one link
between the hubs is cut and mended, a ping is followed hop by hop, and the journal is replayed.
"""

import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from tests.support.fabric import BIN, PATIENCE_SECONDS, Fabric, FabricTest  # noqa: E402

SCENARIO = "name: tun\ntopology: {drawers: 1, hubs: 2}\n"
DATA_BYTES = 300_000


def may_make_namespaces():
    if os.geteuid() != 0 or not os.path.exists("/dev/net/tun"):
        return False
    return subprocess.run(["unshare", "--net", "true"], stderr=subprocess.DEVNULL).returncode == 0


@unittest.skipUnless(may_make_namespaces() or os.environ.get("PERCS_FULL") == "1",
                     "needs root, network namespaces and /dev/net/tun")
class TunTest(FabricTest):
    def setUp(self):
        super().setUp()
        # One hub has its interface by its own percsd, the other by a program beside it.
        self.fabric = Fabric(self.folder / "f", 2)
        self.addCleanup(self.fabric.close)
        self.fabric.start_controller()
        self.fabric.start_daemon(0)
        self.fabric.start_daemon(1, "--tun", "percs0", within=("unshare", "--net"))
        self.fabric.wait_for_state("empty")
        scenario = self.folder / "tun.yaml"
        scenario.write_text(SCENARIO)
        self.fabric.ctl("apply", scenario, "--hold")
        self.program = self.open("sn0-d0-h0")
        self.places = [self.program.pid, self.fabric.daemons[1].pid]
        self.fabric.wait_for(lambda: "percs0: this node is 10.0.0.2" in self.fabric.logs(),
                             "the interface of percsd")

    def open(self, hub):
        """The process that has the namespace with this hub's interface."""
        process = self.start("unshare", "--net", BIN / "percsctl", "tun", hub,
                             "--controller", self.fabric.address)
        line = process.stdout.readline()
        self.assertEqual(f"{hub} is 10.0.0.1 at percs0\n", line,
                         process.stderr.read() if not line else "")
        return process

    def inside(self, place, *command):
        return self.start("nsenter", "--net", "--target", self.places[place], *command)

    def ping(self, seconds, *flags):
        process = self.inside(0, "ping", "-n", "-c", "1", "-W", seconds, *flags, "10.0.0.2")
        out, errors = process.communicate(timeout=PATIENCE_SECONDS)
        self.assertEqual("", errors)
        return process.returncode == 0 and " bytes from 10.0.0.2" in out

    def listens(self, place, port):
        out, _ = self.inside(place, "ss", "-ltnH").communicate(timeout=PATIENCE_SECONDS)
        return f":{port} " in out

    def carry(self, source, target, port):
        """nc sends a file from one namespace to the other."""
        data = random.Random(port).randbytes(DATA_BYTES)
        sent, received = self.folder / f"sent-{port}", self.folder / f"received-{port}"
        sent.write_bytes(data)
        server = self.inside(target, "sh", "-c", f"exec nc -l {port} > {received}")
        self.fabric.wait_for(lambda: self.listens(target, port), "nc to listen")
        client = self.inside(source, "sh", "-c", f"exec nc -N 10.0.0.{target + 1} {port} < {sent}")
        for process in client, server:
            _, errors = process.communicate(timeout=PATIENCE_SECONDS * 2)
            self.assertEqual((0, ""), (process.returncode, errors))
        self.assertEqual(data, received.read_bytes())

    def trace_of_a_ping(self):
        trace = self.start(BIN / "percsctl", "trace", "--from", "sn0-d0-h0", "--to", "sn0-d0-h1",
                           "--format", "json", "--controller", self.fabric.address)
        end = time.monotonic() + PATIENCE_SECONDS
        while trace.poll() is None and time.monotonic() < end:
            self.ping(5)
        out, errors = trace.communicate(timeout=PATIENCE_SECONDS)
        self.assertEqual((0, ""), (trace.returncode, errors))
        return json.loads(out)["packets"][0]

    def test_ping_and_tcp_cross_the_fabric_stop_with_its_link_and_replay(self):
        self.assertTrue(self.ping(20), self.fabric.logs())
        self.assertTrue(self.ping(20, "-s", "1900"), "a packet of about the MTU")
        before = self.fabric.status()["packets_delivered"]
        self.carry(0, 1, 4000)
        self.carry(1, 0, 4001)
        self.assertGreater(self.fabric.status()["packets_delivered"],
                           before + 2 * DATA_BYTES / 2048)

        packet = self.trace_of_a_ping()
        self.assertEqual(84, packet["bytes"], "the IP packet of a ping")
        self.assertEqual(["sn0-d0-h0", "sn0-d0-h1"], [hop["node"] for hop in packet["hops"]])
        self.assertEqual("sn0-d0-h1", packet["deliveries"][0]["node"])
        there = packet["deliveries"][0]["at_ps"] - packet["created_ps"]
        self.assertTrue(0 < there < 10_000_000, f"{there} ps of virtual time")

        self.fabric.ctl("fault", "link-down", "sn0-d0-h0/sn0-d0-h1")
        self.assertFalse(self.ping(2), "there is no way")
        self.fabric.ctl("fault", "link-up", "sn0-d0-h0/sn0-d0-h1")
        self.fabric.wait_for(lambda: self.ping(2), "the way to come back")

        self.program.send_signal(signal.SIGINT)
        out, errors = self.program.communicate(timeout=PATIENCE_SECONDS)
        self.assertEqual(0, self.program.returncode, errors)
        self.assertRegex(out, r"\d+ packets sent, \d+ received")
        self.fabric.ctl("stop")
        self.check_replay(self.fabric, self.fabric.result())

    def test_a_percsd_without_the_capability_says_so(self):
        done = subprocess.run(
            ["setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin",
             BIN / "percsd", "--controller", self.fabric.address, "--tun", "percs1"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_SECONDS)
        self.assertEqual(1, done.returncode)
        self.assertIn("CAP_NET_ADMIN", done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
