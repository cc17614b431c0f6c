"""Programs and requests that memory does not suffice for: a message, and whoever is not at fault
goes on.

Method: a trace of more operations than the address space of one process has room for, with a limit
that is set when the process runs (RLIMIT_AS), and files that never end. Every program has to say
what it lacks, none may be ended by a signal, and after a request that was too large the same
processes carry out the next one.
"""

import gzip
import os
import pathlib
import resource
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from tests.support.fabric import (  # noqa: E402
    BIN, PATIENCE_SECONDS, FabricTest, percsctl, percsctl_json)

OPERATIONS = 3_000_000  # some 400 MiB in memory
ROOM = 200 << 20
SCENARIO = """
name: large
topology: {supernodes: 1, drawers: 1, hubs: 2}
workload: {trace: {file: %s}}
"""
SMALL = """
name: small
topology: {supernodes: 1, drawers: 1, hubs: 2}
workload: {all_to_all: {bytes: 64KiB}}
"""
SANITIZED = bool(os.environ.get("PERCS_SANITIZER"))  # whose shadow has all of the address space


def virtual_bytes(pid):
    pages = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[0])
    return pages * resource.getpagesize()


def limit(process, room):
    most = virtual_bytes(process.pid) + room if room else resource.RLIM_INFINITY
    resource.prlimit(process.pid, resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))


class MemoryTest(FabricTest):
    def setUp(self):
        super().setUp()
        self.small = self.folder / "small.yaml"
        self.small.write_text(SMALL)

    def trace(self, operations):
        name = f"{operations}.goal.gz"
        lines = b"calc 1\n" * (operations // 2)
        with gzip.open(self.folder / name, "wb", compresslevel=1) as file:
            file.write(b"num_ranks 2\nrank 0 {\n" + lines + b"}\nrank 1 {\n" + lines + b"}\n")
        self.file.write_text(SCENARIO % name)
        return self.file

    @unittest.skipIf(SANITIZED, "the address space is the sanitizer's")
    def test_percsctl_says_that_it_has_no_memory_left(self):
        file = self.trace(OPERATIONS)
        for threads in (1, 2):
            done = subprocess.run(
                [BIN / "percsctl", "run", file, "--threads", str(threads)], capture_output=True,
                text=True, timeout=2 * PATIENCE_SECONDS, preexec_fn=lambda: resource.setrlimit(
                    resource.RLIMIT_AS, (400 << 20, resource.RLIM_INFINITY)))
            self.assertEqual(1, done.returncode, done.stderr)
            self.assertEqual("percsctl: out of memory: the limit of its address space (ulimit -v) "
                             "is 400 MiB\n", done.stderr)

    @unittest.skipIf(SANITIZED, "the address space is the sanitizer's")
    def test_a_request_that_is_too_large_for_a_process_harms_nobody_else(self):
        file = self.trace(OPERATIONS)
        digest = percsctl_json("run", self.small)["digest"]
        fabric = self.open_fabric(2)
        for process, what in ((fabric.controller, "the scenario: out of memory"),
                              (fabric.daemons[1], "building the hubs of the scenario: out of")):
            limit(process, ROOM)
            done = fabric.ctl("apply", file, "--wait", check=False)
            self.assertEqual(1, done.returncode, done.stderr)
            self.assertIn(what, done.stderr)
            self.assertIn("ulimit -v", done.stderr)
            limit(process, None)
            fabric.ctl("apply", self.small)
            self.assertEqual(digest, fabric.result()["digest"])
            self.assertIsNone(process.poll(), fabric.logs())

    def test_files_without_an_end_and_traces_that_grow_are_refused(self):
        fifo = self.folder / "fifo.yaml"
        os.mkfifo(fifo)
        link = self.folder / "zero.yaml"
        link.symlink_to("/dev/zero")
        for file, what in ((fifo, "is a pipe; name a file"), (link, "is a device; name a file"),
                           (self.folder, "is a directory; name a file")):
            done = percsctl("run", file, check=False)
            self.assertEqual(3, done.returncode, done.stderr)
            self.assertIn(what, done.stderr)
        self.file.write_text(SCENARIO % "/dev/zero")
        self.assertIn("/dev/zero: is a device; name a file",
                      percsctl("check", self.file, check=False).stderr)
        with gzip.open(self.folder / "bomb.goal.gz", "wb") as file:
            for _ in range(257):
                file.write(bytes(1 << 20))
        self.file.write_text(SCENARIO % "bomb.goal.gz")
        self.assertIn("has more than 256 MiB when uncompressed, which is the limit",
                      percsctl("check", self.file, check=False).stderr)


if __name__ == "__main__":
    unittest.main()
