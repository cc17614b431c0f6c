"""A disk that fills up under a live controller, and has room again.

Method: a small tmpfs that another file fills, where mounting one is allowed; everywhere a limit of
file sizes that stands in for it, set for the running controller and taken away again. Nothing may
end, nothing that was refused may have happened, and the journal has to replay to the digest of the
run.
"""

import pathlib
import resource
import subprocess
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from tests.support.fabric import Fabric, FabricTest  # noqa: E402

FAILED = 1
SCENARIO = """
name: disk
seed: 5
topology: {drawers: 2, hubs: 2}
workload:
  pattern: {pattern: uniform, load: 0.05, reliable: true}
run: {clock: live, pace: 1us/s}
"""
LOSS_DEADLINE_SECONDS = 3
LEASE_SECONDS = 4  # of the first try
CUT = ("--kind", "link_down", "--link", "sn0-d0-h0:LL0")
PAGES = 8
SLOW = ("--kind", "latency", "--latency", "1us", "--link", "sn0-d1-h0:LL0")
# What mounts a tmpfs that only its own process sees; a user namespace lets anybody.
ALONE = ("unshare", "--mount", "--map-root-user")
# state.db's log takes 4 MiB; the filler takes the rest.
MOUNT = ("sh", "-c", 'mount -t tmpfs -o size=8m tmpfs "$0" && exec "$@"')


class FullDiskTest(FabricTest):
    def setUp(self):
        super().setUp()
        self.file.write_text(SCENARIO)
        self.fabric = self.open()
        self.fabric.ctl("apply", self.file, "--hold")
        self.pass_time()
        # Windows of a running fabric fill state.db's log; a log that has had its greatest size
        # starts again at its beginning, and needs no more of the disk. At this pace it takes a
        # minute and more to get there.
        self.fabric.ctl("pause")
        self.fabric.wait_for_state("paused")

    def open(self):
        return self.open_fabric(2, "--loss-deadline", LOSS_DEADLINE_SECONDS)

    def fill(self, full=True):
        """No file may be longer than the journal is."""
        pid = self.fabric.controller.pid
        hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)[1]
        size = (self.fabric.state / "journal").stat().st_size if full else hard
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, hard))

    def fill_under_lease(self, fault, *what):
        """Makes a fault whose lease ends when the disk is full already, at whatever speed."""
        seconds = LEASE_SECONDS
        while True:
            self.fabric.ctl("fault", "create", fault, *what, "--lease", f"wall:{seconds}s")
            made = time.monotonic()
            self.fill()
            if fault in self.faults():
                return made + seconds
            self.fill(False)
            self.fabric.wait_for(lambda: self.fabric.status()["error"] == "", "room")
            seconds *= 2

    def resume_without_room(self):
        self.fabric.ctl("resume", check=False)
        self.fabric.wait_for(lambda: "; free some space: virtual time is blocked until then"
                             in self.fabric.status()["error"], "the reason")

    def time_when_it_stands(self):
        """A window that was granted before the disk was full still ends."""
        seen = [None]

        def stands():
            seen.append(self.fabric.status()["virtual_ps"])
            time.sleep(0.3)  # of wall time, in which a window that goes on ends
            return seen[-1] == seen[-2]
        self.fabric.wait_for(stands, "virtual time to stand")
        return seen[-1]

    def resume_with_room(self):
        self.fill(False)
        self.fabric.wait_for(lambda: self.fabric.status()["error"] == "", "room")
        self.fabric.ctl("resume")
        self.pass_time()

    def pass_time(self):
        start = self.fabric.status()["virtual_ps"]
        self.fabric.wait_for(lambda: self.fabric.status()["virtual_ps"] > start + 500_000, "time")

    def refused(self, text, *arguments):
        done = self.fabric.ctl("fault", *arguments, check=False)
        # An answer, not a deadline.
        self.assertEqual(FAILED, done.returncode, done.stdout + done.stderr + self.fabric.logs())
        self.assertRegex(done.stderr, text)

    def faults(self):
        faults = self.fabric.json("fault", "list")["faults"]
        return [fault["id"] for fault in faults if not fault["id"].startswith("p")]

    def test_commands_are_refused_status_says_why_and_with_room_all_goes_on(self):
        fabric = self.fabric
        fabric.ctl("fault", "create", "before", *CUT)
        expires = self.fill_under_lease("leased", "--kind", "latency", "--latency", "1us", "--link",
                                        "sn0-d0-h0:LR0")
        self.refused(r"^percsctl fault: .*; free some space: ", "delete",
                     "before")
        # The lease is over, and its end cannot be journalled.
        time.sleep(max(expires - time.monotonic(), 0) + 0.1)
        self.assertEqual(["before", "leased"], self.faults())
        self.resume_without_room()
        stood = self.time_when_it_stands()
        for command in (("create", "cut", *CUT), ("delete", "before"), ("reset",),
                        ("link-down", "sn0-d0-h1:LR0")):
            self.refused(r"; free some space: ", *command)
        self.assertEqual(["before", "leased"], self.faults())
        self.assertEqual(stood, fabric.status()["virtual_ps"])
        self.resume_with_room()
        fabric.wait_for(lambda: self.faults() == ["before"], "the end of the lease")
        fabric.ctl("fault", "create", "after", "--kind", "link_down", "--link", "sn0-d0-h1:LR0")
        self.assertEqual(2, sum(p["connected"] for p in fabric.status()["processes"]))
        fabric.ctl("stop")
        result = fabric.result()
        self.assertEqual(([], []), (result["lost"], result["violations"]))
        self.check_replay(fabric, result)

    def test_a_disk_that_stays_full_for_longer_than_the_deadline_loses_nobody(self):
        fabric = self.fabric
        self.fill()
        self.resume_without_room()
        stood = self.time_when_it_stands()
        time.sleep(2.5 * LOSS_DEADLINE_SECONDS)  # what is tested is this time
        self.assertEqual(stood, fabric.status()["virtual_ps"])
        self.resume_with_room()
        self.assertEqual([True, True], [p["connected"] for p in fabric.status()["processes"]])
        self.assertNotIn("daemon_lost", fabric.ctl("events").stdout)
        fabric.ctl("stop")
        result = fabric.result()
        self.assertEqual(([], []), (result["lost"], result["violations"]))
        self.check_replay(fabric, result)

    def test_a_daemon_that_dies_while_the_disk_is_full_is_lost_when_there_is_room(self):
        fabric = self.fabric
        self.fill()
        self.resume_without_room()
        fabric.daemons[1].kill()
        fabric.daemons[1].wait()
        time.sleep(1.5 * LOSS_DEADLINE_SECONDS)  # what is tested is this time
        # Where the state could not be saved already, it was not resumed.
        self.assertIn(fabric.status()["state"], ("running", "paused"), fabric.logs())
        self.resume_with_room()
        fabric.wait_for(lambda: "d1 in place 1" in fabric.ctl("events").stdout, "the loss")
        fabric.ctl("stop")
        result = fabric.result()
        self.assertEqual(1, len(result["lost"]))
        self.check_replay(fabric, result)


class FullTmpfsTest(FullDiskTest):
    def setUp(self):
        super().setUp()
        # Where a whole fault has no room any more, some of the shortest records may: fill() deletes
        # these, whose names are shorter than all others.
        self.pages = PAGES  # there are p0 to p<pages - 1>
        for page in range(PAGES):
            self.assertTrue(self.takes("create", f"p{page}", *SLOW))

    def open(self):
        if subprocess.run([*ALONE, *MOUNT, self.folder, "true"], check=False,
                          stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("no tmpfs can be mounted here, not even in a user namespace")
        fabric = Fabric(self.folder / "f", 2)
        self.addCleanup(fabric.close)
        fabric.state.mkdir()
        fabric.start_controller("--loss-deadline", LOSS_DEADLINE_SECONDS,
                                within=(*ALONE, *MOUNT, fabric.state))
        for place in range(2):
            fabric.start_daemon(place)
        fabric.wait_for_state("empty")
        # As the controller sees it.
        seen = pathlib.Path("/proc", str(fabric.controller.pid), "root")
        fabric.state = seen / fabric.state.relative_to("/")
        return fabric

    def fill(self, full=True):
        filler = self.fabric.state / "filler"
        if not full:
            return filler.unlink()
        with self.assertRaisesRegex(OSError, "No space left"), open(filler, "wb", 0) as file:
            while True:
                file.write(bytes(4096))
        # The last pages of the journal and of state.db still have room: first for whole faults,
        # then for the shortest record.
        while self.takes("create", f"p{self.pages}", *SLOW):
            self.pages += 1
        while self.pages > 0 and self.takes("delete", f"p{self.pages - 1}"):
            self.pages -= 1
        return self.assertGreater(self.pages, 0, "all of them can be deleted")

    def takes(self, *arguments):
        done = self.fabric.ctl("fault", *arguments, check=False)
        if done.returncode != 0:  # no other reason will do
            self.assertIn("; free some space", done.stderr)
        return done.returncode == 0


if __name__ == "__main__":
    unittest.main()
