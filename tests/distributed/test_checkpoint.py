"""Checkpoints: where a run is, written down in the middle of it, and found again.

Method: a live fabric with faults that somebody creates, and a run in one process; each is restored
in one process and over daemons of another number, where the digest of what was delivered by then
has to be the same. A checkpoint that is damaged, newer or of something else is refused.
"""

import pathlib
import re
import struct
import subprocess
import sys
import unittest
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from tests.support.fabric import (  # noqa: E402
    BIN, PATIENCE_SECONDS, FabricTest, percsctl, percsctl_json)

ENDLESS = """
name: endless
seed: 5
topology: {drawers: 2, hubs: 3}
parameters: {detect: 1us, plan: 4us, install: 4us, retransmit_timeout: 10us}
workload:
  pattern: {pattern: uniform, load: 0.1, reliable: true}
"""
FINITE = """
name: finite
seed: 5
topology: {drawers: 2, hubs: 3}
parameters: {detect: 1us, plan: 4us, install: 4us, retransmit_timeout: 10us}
workload:
  all_to_all: {bytes: 32KiB, schedule: spread, reliable: true, payload: verified}
faults:
  - {id: cut, at: 3us, link_down: sn0-d0-h0/sn0-d1-h0}
"""


class CheckpointTest(FabricTest):
    def setUp(self):
        super().setUp()
        self.kept = self.folder / "kept"

    def refused(self, code, text, file):
        done = subprocess.run([BIN / "percsctl", "restore", file], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=PATIENCE_SECONDS)
        self.assertEqual(code, done.returncode, done.stderr)
        self.assertRegex(done.stderr, text)

    def with_checksums(self, data):
        """The journal with the CRC of each record made right."""
        out, at = bytearray(data), 16
        while at < len(data):
            size, _ = struct.unpack_from("<II", data, at)
            struct.pack_into("<I", out, at + 4, zlib.crc32(data[at + 8:at + 8 + size]))
            at += 8 + size
        return bytes(out)

    def test_of_a_live_fabric(self):
        self.file.write_text(ENDLESS)
        live = self.open_fabric(3)
        live.ctl("apply", self.file, "--hold")
        live.ctl("fault", "create", "flap", "--kind", "flap", "--link", "sn0-d0-h0:LL0",
                 "--period", "8us", "--repeats", "4")
        start = live.status()["virtual_ps"]
        live.wait_for(lambda: live.status()["virtual_ps"] > start + 30_000_000, "some time")
        live.ctl("pause")
        kept = live.json("checkpoint", self.kept, "--journal", live.state)
        self.assertEqual(live.status()["virtual_ps"], kept["virtual_ps"])
        self.assertEqual(1, kept["commands"])
        live.ctl("resume")
        live.ctl("stop")
        live.result()
        for threads in (1, 2):
            told = percsctl("restore", self.kept, "--threads", threads).stdout
            self.assertIn(kept["digest"], told)
        other = self.open_fabric(2)
        self.assertEqual(kept["digest"],
                         other.json("restore", self.kept, "--distributed")["digest"])

    def check_restores(self, live, daemons):
        kept = live.json("checkpoint", self.kept, "--journal", live.state)
        self.assertIn(kept["digest"], percsctl("restore", self.kept).stdout)
        other = self.open_fabric(daemons)
        self.assertEqual(kept["digest"],
                         other.json("restore", self.kept, "--distributed")["digest"])

    def test_of_a_run_that_has_finished(self):
        for name, daemons in (("one-drawer", 3), ("two-hubs", 2), ("supernode-alltoall", 4)):
            with self.subTest(name):
                live = self.open_fabric(daemons)
                live.ctl("apply", ROOT / "deploy" / "scenarios" / f"{name}.yaml", "--wait")
                self.kept = self.folder / f"kept-{name}"
                self.check_restores(live, 2)

    def test_of_a_run_that_was_stopped(self):
        self.file.write_text(ENDLESS)
        live = self.open_fabric(3)
        live.ctl("apply", self.file)
        live.wait_for(lambda: live.status()["virtual_ps"] > 20_000_000, "some time")
        live.ctl("stop")
        live.result()
        self.check_restores(live, 2)

    def test_of_a_run_in_one_process(self):
        self.file.write_text(FINITE)
        whole = percsctl_json("run", self.file)["digest"]
        run = percsctl_json("run", self.file, "--checkpoint-at", "7us", "--checkpoint", self.kept)
        self.assertEqual(whole, run["digest"], "to look at it changes nothing")
        restored = percsctl_json("restore", self.kept)
        self.assertEqual(whole, restored["digest"])
        self.assertGreater(restored["wall_seconds"], 0)
        other = self.open_fabric(3)
        self.assertEqual(7_000_000,
                         other.json("restore", self.kept, "--distributed")["virtual_ps"])

    def test_of_a_run_whose_device_is_out_of_its_slot(self):
        scenario = ROOT / "deploy" / "scenarios" / "hfi-pcie.yaml"
        whole = percsctl_json("run", scenario)["digest"]
        percsctl("run", scenario, "--checkpoint-at", "250us", "--checkpoint", self.kept)
        self.assertEqual(whole, percsctl_json("restore", self.kept)["digest"])
        other = self.open_fabric(2)
        self.assertEqual(250_000_000,
                         other.json("restore", self.kept, "--distributed")["virtual_ps"])

    def test_one_that_is_damaged_newer_or_none_is_refused(self):
        self.file.write_text(FINITE)
        percsctl("run", self.file, "--checkpoint-at", "7us", "--checkpoint", self.kept)
        journal = self.kept / "journal"
        data = journal.read_bytes()
        journal.write_bytes(data[:-1])
        self.refused(1, "is not a complete checkpoint: its end is missing", self.kept)
        newer = data[:8] + struct.pack("<I", 99)
        journal.write_bytes(newer + struct.pack("<I", zlib.crc32(newer)) + data[16:])
        self.refused(1, "has format 99, and this software reads formats up to 1", self.kept)
        at = data.index(b"checkpoint")  # the mark of the end is beside the digest
        digest = re.search(rb"[0-9a-f]{32}", data[at - 64:at + 64])
        wrong = data.replace(digest.group(), b"0" * 32)
        journal.write_bytes(self.with_checksums(wrong))
        self.refused(6, "at 7us virtual the digest is [0-9a-f]{32}, and the checkpoint has "
                     "0{32}", self.kept)
        journal.write_bytes(b"something")
        self.refused(1, "is not a journal", self.kept)
        # What was delivered is not what the checkpoint says.
        journal.write_bytes(data)
        next(self.kept.glob("payload-*")).write_bytes(b"another scenario")
        self.refused(1, "is damaged: its content does not match the hash in its name", self.kept)


if __name__ == "__main__":
    unittest.main()
