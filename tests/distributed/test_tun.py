"""Programs that know nothing of windows, over the emulated fabric.

Method: two `percsctl tun`, each in a network namespace of its own, at hubs of two percsd; what runs
in the namespaces is the kernel's own ICMP, TCP and UDP. The one link between the hubs is cut and
mended, and the journal is replayed.
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from tests.support.fabric import BIN, PATIENCE_SECONDS, Fabric, percsctl_json  # noqa: E402

SCENARIO = "name: tun\ntopology: {drawers: 1, hubs: 2}\n"
PYTHON = "/usr/bin/python3"

PING = """
import os, socket, struct, sys, time
def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total & 0xffff) + (total >> 16)
    return ~(total + (total >> 16)) & 0xffff
link = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
link.settimeout(float(sys.argv[2]))
head = struct.pack("!BBHHH", 8, 0, 0, os.getpid() & 0xffff, 1)
data = bytes(range(56))
packet = struct.pack("!BBHHH", 8, 0, checksum(head + data), os.getpid() & 0xffff, 1) + data
link.sendto(packet, (sys.argv[1], 0))
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    answer = link.recv(4096)
    if answer[20] == 0 and answer[24:] == packet[4:]:
        sys.exit(0)
sys.exit(1)
"""

SERVER = """
import hashlib, socket
server = socket.create_server(("0.0.0.0", 4000))
print("listening", flush=True)
peer, _ = server.accept()
size = int(peer.makefile("rb").readline())
data = b""
while len(data) < size:
    data += peer.recv(65536)
peer.sendall(hashlib.sha256(data).digest())
"""

CLIENT = """
import hashlib, random, socket, sys
data = random.Random(1).randbytes(int(sys.argv[2]))
peer = socket.create_connection((sys.argv[1], 4000), timeout=60)
peer.sendall(b"%d\\n" % len(data) + data)
sys.exit(0 if peer.recv(64) == hashlib.sha256(data).digest() else 1)
"""


def may_make_namespaces():
    if os.geteuid() != 0 or not os.path.exists("/dev/net/tun") or not shutil.which("nsenter"):
        return False
    return subprocess.run(["unshare", "--net", "true"], stderr=subprocess.DEVNULL).returncode == 0


@unittest.skipUnless(may_make_namespaces(), "needs root, network namespaces and /dev/net/tun")
class TunTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="percs-tun-", dir="/tmp"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.fabric = Fabric(self.folder / "f", 2)
        self.addCleanup(self.fabric.close)
        self.fabric.open()
        self.fabric.wait_for_state("empty")
        scenario = self.folder / "tun.yaml"
        scenario.write_text(SCENARIO)
        self.fabric.ctl("apply", scenario, "--hold")
        self.places = [self.open(f"sn0-d0-h{i}") for i in (0, 1)]

    def start(self, *command):
        process = subprocess.Popen(list(map(str, command)), text=True, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def open(self, hub):
        """The process that has the namespace, and its address."""
        process = self.start("unshare", "--net", BIN / "percsctl", "tun", hub,
                             "--controller", self.fabric.address)
        line = process.stdout.readline()
        found = re.fullmatch(rf"{hub} is (10\.0\.0\.\d+) at percs0\n", line)
        self.assertTrue(found, line + (process.stderr.read() if not line else ""))
        return process, found[1]

    def inside(self, place, program, *arguments):
        return self.start("nsenter", "--net", "--target", self.places[place][0].pid, PYTHON, "-c",
                          program, *arguments)

    def ping(self, seconds):
        process = self.inside(0, PING, self.places[1][1], seconds)
        process.communicate(timeout=PATIENCE_SECONDS)
        return process.returncode == 0

    def test_ping_and_tcp_cross_the_fabric_stop_with_its_link_and_replay(self):
        self.assertEqual(["10.0.0.1", "10.0.0.2"], [address for _, address in self.places])
        self.assertTrue(self.ping(20), self.fabric.logs())
        before = self.fabric.status()["packets_delivered"]
        server = self.inside(1, SERVER)
        self.assertEqual("listening\n", server.stdout.readline())
        client = self.inside(0, CLIENT, self.places[1][1], 200_000)
        _, errors = client.communicate(timeout=PATIENCE_SECONDS * 2)
        self.assertEqual(0, client.returncode, errors)
        self.assertGreater(self.fabric.status()["packets_delivered"], before + 200_000 / 2048)

        self.fabric.ctl("fault", "link-down", "sn0-d0-h0/sn0-d0-h1")
        self.assertFalse(self.ping(2), "there is no way")
        self.fabric.ctl("fault", "link-up", "sn0-d0-h0/sn0-d0-h1")
        self.fabric.wait_for(lambda: self.ping(2), "the way to come back")

        for process, _ in self.places:
            process.send_signal(signal.SIGINT)
            out, errors = process.communicate(timeout=PATIENCE_SECONDS)
            self.assertEqual(0, process.returncode, errors)
            self.assertRegex(out, r"\d+ packets sent, \d+ received")
        self.fabric.ctl("stop")
        result = self.fabric.result()
        replayed = percsctl_json("replay", self.fabric.state)
        self.assertEqual(result["digest"], replayed["digest"])


if __name__ == "__main__":
    unittest.main()
