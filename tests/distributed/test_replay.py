"""percsctl replay of a journal that another software wrote.

Method: the journal of a real run, in which the model of its controller and the digest of its end
are changed, with checksums that fit.
"""

import shutil
import struct
import subprocess
import unittest
import zlib

from fabric import PATIENCE_SECONDS
from test_cli import BIN, OK, TINY, CliTest

VIOLATION = 6
HEADER_BYTES, FRAME_BYTES = 16, 8
APPLY, END = 3, 16  # of percs.v1.JournalRecord
VERSIONS, DIGEST = 1, 1  # of JournalApply, of JournalEnd
MODEL = 3  # of Versions


def fields(message):
    """(number, wire type, value) of a protobuf message: a varint, or bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            value |= (byte & 0x7f) << shift
            at, shift = at + 1, shift + 7
            if byte < 0x80:
                return value
    while at < len(message):
        key = varint()
        number, kind = key >> 3, key & 7
        if kind == 0:
            yield number, kind, varint()
            continue
        size = {1: lambda: 8, 2: varint, 5: lambda: 4}[kind]()
        yield number, kind, message[at:at + size]
        at += size


def encoded(parts):
    def varint(value):
        out = bytearray()
        while value >= 0x80:
            out.append(value & 0x7f | 0x80)
            value >>= 7
        return bytes(out) + bytes([value])
    whole = b""
    for number, kind, value in parts:
        whole += varint(number << 3 | kind)
        whole += varint(value) if kind == 0 else (varint(len(value)) if kind == 2 else b"") + value
    return whole


def changed(message, path, change):
    """`message` with the field at `path` changed."""
    return encoded([(number, kind, value if number != path[0] else
                     change(value) if len(path) == 1 else changed(value, path[1:], change))
                    for number, kind, value in fields(message)])


class ReplayTest(CliTest):
    def rewrite(self, path, change):
        """In each record of the journal that has it."""
        data = self.journal.read_bytes()
        whole, at = data[:HEADER_BYTES], HEADER_BYTES
        while at < len(data):
            size = struct.unpack_from("<I", data, at)[0]
            record = data[at + FRAME_BYTES:at + FRAME_BYTES + size]
            at += FRAME_BYTES + size
            record = changed(record, path, change)
            whole += struct.pack("<II", len(record), zlib.crc32(record)) + record
        self.journal.write_bytes(whole)

    def replay(self):
        return subprocess.run([BIN / "percsctl", "replay", self.journal], env=self.env, text=True,
                              capture_output=True, timeout=PATIENCE_SECONDS)

    def test_a_journal_of_another_model_is_replayed_and_its_digest_judged_with_that_in_mind(self):
        model = self.good_json("version")["model"]
        self.good("up", "--daemons", 1)
        self.good("apply", self.write("tiny.yaml", TINY), "--wait")
        copy = shutil.copytree(self.folder / "state" / "percs" / "default", self.folder / "copy",
                               ignore=lambda folder, names: [n for n in names if "." in n])
        self.journal = copy / "journal"
        kept = self.journal.read_bytes()
        self.assertEqual({"run": 1, "commands": []},
                         self.good_json("replay", self.journal, "--list"))
        self.rewrite((APPLY, VERSIONS, MODEL), lambda value: value)
        self.assertEqual(kept, self.journal.read_bytes(), "what this test writes is a journal")
        self.assertEqual((OK, ""), (self.replay().returncode, self.replay().stderr))
        # Digests that are equal all the same are equal.
        self.rewrite((APPLY, VERSIONS, MODEL), lambda value: value + 1)
        done = self.replay()
        said = (f"percsctl replay: the journal was written by model {model + 1}, this software "
                f"has model {model}; digests may differ\n")
        self.assertEqual((OK, said), (done.returncode, done.stderr))
        self.rewrite((END, DIGEST), lambda digest: b"0" * len(digest))
        done = self.replay()
        self.assertEqual((VIOLATION, f"{said}percsctl replay: the live run used model "
                                     f"{model + 1}, this software has model {model}: results "
                                     f"differ\n"),
                         (done.returncode, done.stderr))
        self.rewrite((APPLY, VERSIONS, MODEL), lambda value: value - 1)
        done = self.replay()
        self.assertEqual(
            (VIOLATION, "percsctl replay: the replay differs from the live run\n"),
            (done.returncode, done.stderr))


if __name__ == "__main__":
    unittest.main()
