"""Wireshark captures from a running fabric, by the extcap that is shipped.

Method: a program sends an echo request of the Internet Protocol between windows of two hubs on two
daemons, again and again; Debian's tshark captures on the interface `percs` until it has seen
enough.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
from fabric import BIN  # noqa: E402
from python_package import PackageTest, percs  # noqa: E402
from test_wireshark import DISSECTOR, LIMIT_SECONDS, echo_request  # noqa: E402

MACHINE = """
name: live
machine: p7ih
topology: {supernodes: 1, drawers: 2, hubs: 2}
"""
EXTCAP = os.path.join(ROOT, "deploy", "wireshark", "extcap")
NEAR, FAR = "sn0-d0-h0", "sn0-d1-h0"
RECORDS = 20


@unittest.skipUnless(shutil.which("tshark"), "tshark is not there; see deploy/install")
class LiveTest(PackageTest):
    def setUp(self):
        self.fabric = percs.Fabric.local(daemons=2)
        self.addCleanup(self.fabric.close)

    def attach(self):
        """A window of each hub, in a run that begins when both are there."""
        self.fabric.apply(percs.Scenario.from_text(MACHINE), wait_endpoints=2)
        made = {}

        def one(hub):
            made[hub] = self.fabric.window(hub, window=0, seconds=60.0)
        threads = [threading.Thread(target=one, args=(hub,)) for hub in (NEAR, FAR)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for window in made.values():
            self.addCleanup(window.close)
        return made[NEAR], made[FAR]

    def tshark(self, *arguments):
        environment = dict(os.environ, HOME=str(self.folder), PATH=f"{BIN}:{os.environ['PATH']}",
                           WIRESHARK_EXTCAP_DIR=EXTCAP)
        command = ["tshark", "-X", f"lua_script:{DISSECTOR}", *arguments]
        if os.geteuid() == 0:  # for whom Wireshark looks in its own folder only
            own = re.search(r"(?m)^Extcap path:\s*(.*)$", subprocess.run(
                ["tshark", "-G", "folders"], text=True, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL).stdout)[1]
            command = ["unshare", "-m", "sh", "-c", f'mount --bind "{EXTCAP}" "{own}" && exec "$@"',
                       "sh", *command]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=environment)

    def test_an_echo_request_between_hubs_is_captured_while_the_fabric_runs(self):
        listed, said = self.tshark("-D").communicate(timeout=LIMIT_SECONDS)
        self.assertRegex(listed, r"(?m)^\d+\. percs \(PERCS fabric\)$", said)
        near, far = self.attach()
        capture = self.tshark("-i", "percs", "-o", f"extcap.percs.name:{self.fabric.name}", "-o",
                              "extcap.percs.kind:window", "-c", str(RECORDS), "-T", "json",
                              "--no-duplicate-keys")
        self.addCleanup(capture.wait)
        self.addCleanup(capture.kill)
        found = []
        reader = threading.Thread(target=lambda: found.append(capture.communicate()))
        reader.start()
        echo = echo_request(120)
        while reader.is_alive():
            near.send(FAR, 0, echo, format="ip").wait()
            self.assertEqual(echo, far.receive().data)
        text, said = found[0]
        self.assertEqual(0, capture.returncode, said)
        records = [record["_source"]["layers"] for record in json.loads(text)]
        self.assertEqual(RECORDS, len(records))
        for layers in records:
            self.assertEqual(("10.0.0.1", "10.0.0.2"),
                             (layers["ip"]["ip.src"], layers["ip"]["ip.dst"]))
            self.assertEqual("1", layers["icmp"]["icmp.checksum.status"])
        places = {layers["frame"]["frame.interface_id_tree"]["frame.interface_name"]
                  for layers in records}
        self.assertLessEqual({NEAR, FAR}, places)
        self.assertTrue(any(place.startswith(f"{NEAR}:LR") for place in places), places)


if __name__ == "__main__":
    unittest.main()
