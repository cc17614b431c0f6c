"""percsctl process: what docs/faults.md says can be done to the processes of a fabric, as written.

Method: the commands of its block "Process failures" are run by a shell, one after the other, in a
home folder of their own, at twenty times the pace. After each, what it says of itself is waited
for; the last one's replay has to have the digest of the run.
"""

import pathlib
import re
import shlex
import subprocess
import time
import unittest

from test_cli import BIN, FAILED, LIMIT_SECONDS, OK, ROOT, CliTest


def block_of(heading):
    """The first block of commands below it."""
    text = (ROOT / "docs" / "faults.md").read_text()
    block = re.search(rf"(?ms)^## {heading}\n.*?^```sh\n(.*?)^```$", text)[1]
    return [line.split(" #")[0].strip() for line in block.splitlines()]


class ProcessesTest(CliTest):
    def setUp(self):
        super().setUp()
        del self.env["XDG_STATE_HOME"]
        self.env.update(HOME=str(self.folder), PATH=f"{BIN}:{self.env['PATH']}")

    def shell(self, line):
        done = subprocess.run(["bash", "-c", line], cwd=ROOT, env=self.env, text=True,
                              capture_output=True, timeout=LIMIT_SECONDS)
        self.assertEqual(OK, done.returncode, f"{line}\n{done.stdout}{done.stderr}")
        return done.stdout

    def pid(self, process):
        (fabric,) = self.good_json("ps")
        index = 0 if process == "controller" else 1 + int(process[1:])
        return fabric["processes"][index]["pid"]

    def state_of(self, process):
        stat = pathlib.Path(f"/proc/{self.pid(process)}/stat")
        return stat.read_text().rsplit(")", 1)[1].split()[0] if stat.exists() else "gone"

    def status(self):
        return self.good_json("status")

    def pass_time(self):
        end = self.status()["virtual_ps"] + 3_000_000
        self.wait_for("virtual time to pass", lambda: self.status()["virtual_ps"] > end)

    def happened(self, kind):
        """Routes that follow, too."""
        self.wait_for(kind, lambda: re.search(rf"(?ms)^ +\d+ +{kind} .*^ +\d+ +reroute ",
                                              self.good("events")))

    def after(self, action, process):
        """What the comment in the docs says of the command."""
        if action == "stop":
            self.wait_for("the freeze", lambda: self.state_of(process) == "T")
            before = self.status()["virtual_ps"]
            time.sleep(0.5)  # of wall time, in which but what was granted passes
            self.assertLess(self.status()["virtual_ps"] - before, 100_000, "virtual time waits")
        elif action == "continue":
            self.pass_time()
            self.assertNotIn("daemon_lost", self.good("events"))
        elif action == "break":
            self.wait_for("its streams", lambda: self.status()["processes"][2]["reconnects"] > 0)
            self.pass_time()
        elif action == "kill" and process == "d3":
            self.happened("daemon_lost")
            self.pass_time()
            self.assertIn(self.state_of(process), ("gone", "Z"))
        elif action == "restart" and process == "d3":
            self.happened("daemon_rejoined")
            self.pass_time()
        elif action == "kill":
            self.assertEqual(4, self.ctl("status").returncode, "nobody answers")
        else:
            self.wait_for("all of them", lambda: self.ctl("status").returncode == OK and 4 == sum(
                p["connected"] for p in self.status()["processes"]))
            self.pass_time()

    def test_the_documented_commands_do_what_they_say_and_the_journal_replays(self):
        lines = block_of("Process failures")
        actions = []
        told = []
        for line in lines:
            told.append(self.shell(line + (" --pace 20us/s" if " apply " in line else "")))
            words = shlex.split(line)
            if words[1] == "process":
                actions.append(tuple(words[2:]))
                self.after(*words[2:])
        self.assertEqual([("stop", "d1"), ("continue", "d1"), ("break", "d2"), ("kill", "d3"),
                          ("restart", "d3"), ("kill", "controller"), ("restart", "controller")],
                         actions)
        events = told[lines.index("percsctl events")]
        for kind in ("daemon_lost .* d3 in place 3 .* and their [0-9]+ links to others go down",
                     "reroute "):
            self.assertRegex(events, rf"(?m)^ +\d+ +{kind}")
        self.assertNotRegex(events, r"(?m)^ +\d+ +alert ", "links of d3 are in its two lines")
        result, replay = told[-2:]
        self.assertRegex(result, r"(?m)^lost at .*: d3 in place 3 .*with 8 hubs")
        self.assertRegex(result, r"(?m)^rejoined at .*: d3 in place 3 .*with 8 hubs")
        digests = dict(re.findall(r"(?m)^(digest|live) +([0-9a-f]{32})$", replay))
        self.assertEqual(2, len(digests), replay)
        self.assertEqual(digests["live"], digests["digest"])

    def test_a_process_that_is_not_there_is_answered_with_those_that_are(self):
        self.good("up", "--daemons", 1)
        self.bad(3, 'percsctl process: fabric "default" has no process d7; it has controller, d0',
                 "process", "kill", "d7")
        self.good("process", "kill", "d0")
        self.wait_for("its end", lambda: self.state_of("d0") in ("gone", "Z"))
        done = self.ctl("process", "stop", "d0")
        self.assertEqual(FAILED, done.returncode)
        self.assertRegex(done.stderr, r"^percsctl process: d0 \(pid \d+\) is not running; "
                                      r"`percsctl process restart` starts it again\n$")
        self.assertEqual("restart", self.good_json("process", "restart", "d0")["action"])


if __name__ == "__main__":
    unittest.main()
