"""What a new user of percsctl types first: slips of the fingers, help, a narrow terminal, Tab."""

import fcntl
import os
import pty
import re
import shutil
import struct
import subprocess
import termios
import unittest
from xml.etree import ElementTree

from test_cli import BAD_INPUT, BIN, ENDLESS, OK, SCENARIOS, TINY, USAGE, CliTest

SEE = "\nSee `percsctl --help`."


class FirstHourTest(CliTest):
    def on_terminal(self, columns, *arguments, code=OK, **variables):
        """What a command writes to a terminal of that width, both streams."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        env = dict(self.env, TERM="xterm", **variables)
        process = subprocess.Popen([BIN / "percsctl", *map(str, arguments)], env=env, stdin=theirs,
                                   stdout=theirs, stderr=theirs, cwd=self.folder)
        os.close(theirs)
        text = b""
        while True:
            try:
                block = os.read(ours, 65536)
            except OSError:  # the terminal is gone when the process is
                break
            if not block:
                break
            text += block
        os.close(ours)
        self.assertEqual(code, process.wait(), text.decode())
        return text.decode().replace("\r\n", "\n")

    def complete(self, *words):
        return self.good("__complete", *words).splitlines()

    def names(self, *words):
        return [line.split("\t")[0] for line in self.complete(*words)]

    def test_slips_of_the_fingers_get_the_nearest_name(self):
        for wrong, right in (("runn", "run"), ("statuss", "status")):
            self.bad(USAGE, f'percsctl: no command "{wrong}"; did you mean "{right}"?{SEE}', wrong)
        file = self.write("tiny.yaml", TINY)
        wrong = ('percsctl run: no option --theads; did you mean "--threads"?\n'
                 "See `percsctl run --help`.")
        for words in (("--theads", 2, file), (file, "--theads", 2), (file, "--theads=2")):
            self.bad(USAGE, wrong, "run", *words)
        self.bad(USAGE, 'percsctl fault: no command "creat"; did you mean "create"?\n'
                 "See `percsctl fault --help`.", "fault", "creat")
        self.bad(USAGE, 'percsctl fault: no command "link-dwn"; did you mean "link-down"?\n'
                 "See `percsctl fault --help`.", "fault", "link-dwn", "x", "--name", "lab")
        self.bad(USAGE, 'percsctl routes: two hubs are needed, SRC and DST; did you mean "dump"?',
                 "routes", "dmp", "--name", "lab")
        self.bad(USAGE, 'percsctl collective: OPERATION: "allreduc" is not a choice; did you mean '
                 '"allreduce"? Choices: barrier, broadcast, reduce, allreduce, scan, gather, '
                 "scatter, allgather, alltoall\nSee `percsctl collective --help`.",
                 "collective", "allreduc")
        self.bad(USAGE, "percsctl sweep3d: --cus: 25 is out of range; allowed: 1 to 24\n"
                 "See `percsctl sweep3d --help`.", "sweep3d", "--cus", 25)
        self.bad(USAGE, "percsctl graph: a.txt: name the file .svg, .dot, .gv or .mmd, or add "
                 "--type", "graph", file, "-o", "a.txt")
        self.bad(USAGE, "percsctl status: --name is an option of `status`; write it after that "
                 "word\nSee `percsctl status --help`.", "--name", "lab", "status")
        for path, right in (("tinny.yaml", "tiny.yaml"), ("tiny", "tiny.yaml")):
            self.bad(BAD_INPUT, f"percsctl run: {path}: cannot be opened: No such file or "
                     f'directory; did you mean "{right}"?', "run", path)
        (self.folder / "scenarios").mkdir()
        self.write("scenarios/tiny.yaml", TINY)
        self.assertIn('did you mean "scenarios/tiny.yaml"?',
                      self.ctl("check", "scenario/tiny.yml").stderr)

    def test_a_journal_that_is_not_there_gets_the_one_that_is_meant(self):
        file = self.write("tiny.yaml", TINY)
        self.good("run", file, "--checkpoint-at", "1us", "--checkpoint", "saved")
        for command in ("restore", "replay", "view"):
            output = ("-o", "page.html") if command == "view" else ()
            self.bad(BAD_INPUT, f"percsctl {command}: savd: no such file or folder; did you mean "
                     '"saved"?', command, "savd", *output)
            self.bad(BAD_INPUT, f"percsctl {command}: .: there is no journal in this folder; did "
                     'you mean "./saved"?', command, ".", *output)
        self.bad(BAD_INPUT, "percsctl restore: nowhere: no such file or folder", "restore",
                 "nowhere")
        self.good("up", "--name", "lab", "--daemons", 1)
        lab = self.folder / "state" / "percs" / "lab"
        self.assertIn(f'did you mean "{lab}"?', self.ctl("replay", "lab").stderr)

    def test_help_and_version_are_found_where_they_are_looked_for(self):
        self.assertEqual(self.good("--help"), self.good("help"))
        self.assertEqual(self.good("fault", "create", "--help"),
                         self.good("help", "fault", "create"))
        self.assertEqual(self.good("version"), self.good("--version"))
        self.bad(USAGE, 'percsctl help: no command "rum"; did you mean "run"?', "help", "rum")

    def test_an_error_of_a_setting_names_the_setting(self):
        file = self.write("tiny.yaml", TINY)
        self.bad(BAD_INPUT,
                 "percsctl run: --set routing.mode=hw_indirect: routing.fifo: hw_indirect needs a "
                 "middle supernode other than those of source and destination, so at least 3; this "
                 "machine has 1\n--set routing.mode=hw_indirect: routing.rdma: hw_indirect needs a "
                 "middle supernode other than those of source and destination, so at least 3; this "
                 "machine has 1", "run", file, "--set", "routing.mode=hw_indirect")
        self.good("run", file, "--set", "routing.selection=random")

    def test_tables_fit_the_terminal_and_units_are_in_the_header(self):
        scenario = SCENARIOS / "link-failure.yaml"
        for columns in (80, 120):
            text = self.on_terminal(columns, "run", scenario, NO_COLOR="1")
            lines = text.split("\033[K")[-1].splitlines()
            self.assertLessEqual(max(map(len, lines)), columns)
            self.assertNotIn("\033", lines[-1])
            self.assertRegex(text, r"(?m)^latency \(virtual\) +mean us +p50 us +p99 us")
            self.assertRegex(text, r"(?m)^ *packet +[0-9.]+ +[0-9.]+ ")
            help_text = self.on_terminal(columns, "run", "--help")
            self.assertLessEqual(max(map(len, help_text.splitlines())), columns)
            # One paragraph, filled: no line of it ends before the next word would.
            codes = self.on_terminal(columns, "help").partition("Exit codes: ")[2].splitlines()
            self.assertIn("130 interrupted.", codes[{80: 2, 120: 1}[columns]])
            group = self.on_terminal(columns, "fault", code=USAGE)
            self.assertLessEqual(max(map(len, group.splitlines())), columns)
        self.assertIn("\033[1mlatency (virtual)", self.on_terminal(80, "run", scenario))
        self.assertNotIn("\033", self.good("run", scenario))

    def test_calls_of_a_collective_are_as_many_as_it_takes_to_settle(self):
        row, = self.good_json("collective", "allreduce", "--nodes", 2, "--tasks", 4)["rows"]
        self.assertLess(row["iterations"], 100)
        exact, = self.good_json("collective", "allreduce", "--nodes", 2, "--tasks", 4,
                                "--iterations", 1000)["rows"]
        self.assertEqual(1000, exact["iterations"])
        self.assertAlmostEqual(1, row["nanoseconds"] / exact["nanoseconds"], delta=0.01)

    def test_progress_is_shown_where_it_is_asked_for(self):
        # At this pace it takes more than the second after which progress is shown.
        done = self.ctl("run", self.write("endless.yaml", ENDLESS), "--set", "stop_at=13us",
                        "--progress")
        self.assertEqual(OK, done.returncode)
        self.assertRegex(done.stderr, r"(?m)^[0-9.]+us virtual, .* packets, wall .*, \d+ %, ETA ")
        self.assertEqual("", self.ctl("run", "endless.yaml", "--set", "stop_at=1us").stderr)

    def test_tab_completes_commands_options_values_and_settings(self):
        self.assertIn("counters", self.names("co"))
        self.assertIn("--threads\tThreads to run on, at most one per core; the results are the "
                      "same for any number", self.complete("run", "--thr"))
        self.assertEqual(["human", "json"], self.names("run", "x.yaml", "--format", ""))
        self.assertEqual(["--format=json"], self.names("status", "--format=j"))
        self.assertEqual([":files"], self.complete("run", ""))
        self.assertEqual([":folders"], self.complete("restore", ""))
        self.assertEqual(["create"], self.names("fault", "cr"))
        self.assertIn("--kind", self.names("fault", "create", "--"))
        self.assertIn("link_down", self.names("fault", "create", "cut", "--kind", ""))
        self.assertEqual(["workload.pattern.load="],
                         self.names("run", "--set", "workload.pattern.lo"))
        self.assertEqual(["routing.fifo.mode=hw_direct", "routing.fifo.mode=hw_direct_striped"],
                         self.names("sweep", "--over", "routing.fifo.mode=hw_d"))
        self.assertEqual(["bash"], self.names("completion", "b"))
        self.assertEqual([], self.names("status", "--name", "lab", "x"))

    def bash(self, line):
        """The words that bash would offer at the end of this line."""
        script = ('source <("$PERCSCTL" completion bash); COMP_LINE=$1 COMP_POINT=${#1}; '
                  'compopt() { :; }; _percsctl; printf "%s\\n" "${COMPREPLY[@]}"')
        env = dict(self.env, PERCSCTL=str(BIN / "percsctl"), PATH=f"{BIN}:{os.environ['PATH']}")
        done = subprocess.run(["bash", "-c", script, "bash", line], env=env, text=True, check=True,
                              stdout=subprocess.PIPE, cwd=self.folder)
        return done.stdout.split()

    def test_bash_completes_what_it_splits_at_colons(self):
        self.write("tiny.yaml", TINY)
        self.assertEqual(["tiny.yaml"], self.bash("percsctl run ti"))
        self.assertEqual(["--threads"], self.bash("percsctl run --thr"))
        self.assertEqual(["load="], [w.rsplit(".", 1)[-1] for w in
                                     self.bash("percsctl run --set workload.pattern.lo")])
        self.assertEqual(["json"], self.bash("percsctl run --format=j"))


class GraphTest(CliTest):
    def drawing(self, *arguments):
        self.good("graph", *arguments, "-o", "drawing.svg")
        return ElementTree.parse(self.folder / "drawing.svg").getroot()

    def elements(self, root, name):
        return list(root.iter("{http://www.w3.org/2000/svg}" + name))

    def test_a_machine_is_drawn_from_its_scenario(self):
        file = self.write("tiny.yaml", TINY)  # 2 drawers of 2 hubs: 2 LL and 4 LR links
        root = self.drawing(file)
        self.assertEqual((4, 6), tuple(len(self.elements(root, name))
                                       for name in ("circle", "path")))
        dot = self.good("graph", file)
        self.assertEqual(6, dot.count(" -- "))
        self.assertIn('subgraph "cluster_sn0-d1"', dot)
        if shutil.which("dot"):
            subprocess.run(["dot", "-Tsvg", "-o", "/dev/null"], input=dot, text=True, check=True)
        self.assertIn("  sn0-d0-h0 --- sn0-d0-h1\n", self.good("graph", file, "--type", "mermaid"))
        self.assertEqual(3, len(self.elements(self.drawing(file, "--set", "topology.drawers=1",
                                                           "--set", "topology.hubs=3"), "path")))
        self.assertEqual(USAGE, self.ctl("graph", "--set", "topology.drawers=1").returncode)
        many = self.drawing(SCENARIOS / "partition.yaml", "--type", "matrix")
        self.assertGreater(len(self.elements(many, "rect")), 10)

    def places(self, name, **topology):
        root = self.drawing(SCENARIOS / name, *(word for field, value in topology.items()
                                                for word in ("--set", f"topology.{field}={value}")))
        return {circle[0].text: (float(circle.get("cx")), float(circle.get("cy")))
                for circle in self.elements(root, "circle")}

    def test_switches_stand_as_their_network_is(self):
        grid = self.places("torus.yaml", dims="3x4x2")
        self.assertEqual(24, len(set(grid.values())))
        rows = {"s0-0-0": (0, 0), "s0-0-1": (1, 0), "s0-3-0": (0, 3), "s1-0-0": (3, 0),
                "s2-0-0": (0, 5)}
        (x, y), step = grid["s0-0-0"], grid["s0-0-1"][0] - grid["s0-0-0"][0]
        self.assertEqual(rows, {name: ((grid[name][0] - x) / step, (grid[name][1] - y) / step)
                                for name in rows})
        tree = self.places("fat-tree.yaml")
        levels = [{at[1] for name, at in tree.items() if name.startswith(f"l{level}-")}
                  for level in (1, 2, 3)]
        self.assertEqual([1, 1, 1], [len(level) for level in levels])
        self.assertGreater(*(max(level) for level in levels[:2]))
        self.assertGreater(*(max(level) for level in levels[1:]))

    def test_a_fabric_is_drawn_with_what_is_down(self):
        self.good("up", "--daemons", 2)
        self.good("apply", self.write("endless.yaml", ENDLESS))
        self.assertRegex(self.good("links", "--down"), r"^no link is down, at \S+ virtual\n$")
        self.good("fault", "link-down", "sn0-d0-h0/sn0-d0-h1")
        self.wait_for("the link to be down",
                      lambda: self.good("links", "--down").startswith("1 link down, at "))
        root = self.drawing()
        title = self.elements(root, "text")[0].text
        self.assertRegex(title, r"^default at [\d.,]+ ?[nmu]?s")
        self.assertGreater(float(root.get("width")), 8 * len(title), "the title is cut off")
        down = [line for line in self.elements(root, "path") if line.get("stroke") == "#d62728"]
        self.assertEqual(["sn0-d0-h0:LL0 to sn0-d0-h1, down"], [line[0].text for line in down])
        self.assertEqual(1, self.good("graph", "--type", "mermaid").count("-.-|down|"))


class FirstFabricTest(CliTest):
    def test_a_first_fabric_answers_in_words(self):
        self.good("up", "--name", "lab", "--daemons", 2)
        names = FirstHourTest.names
        self.complete = lambda *words: self.good("__complete", *words).splitlines()
        self.assertEqual(["lab"], names(self, "status", "--name", ""))
        self.good("apply", self.write("endless.yaml", ENDLESS), "--name", "lab")
        self.assertEqual("no events so far\n", self.good("events", "--name", "lab"))
        at = ("--name", "lab")
        self.assertEqual(["sn0-d0-h0", "sn0-d0-h1"], names(self, "counters", *at, "sn0-d0"))
        self.assertEqual(["sn0-d0-h0:LL0"],
                         names(self, "fault", "link-down", *at, "sn0-d0-h0:LL"))
        self.good("pause", *at)
        done = self.good_json("step", "7us", "--wait", *at)
        self.assertEqual(("paused", done["at_ps"]), (done["state"], done["virtual_ps"]))
        self.assertRegex(self.good("step", "1us", "--wait", *at),
                         r"^paused at [0-9.]+us \(virtual\)\n$")
        self.good("resume", *at)
        self.good("fault", "create", "cut", "--kind", "link_down", "--link", "sn0-d0-h0:LR0", *at)
        self.assertEqual(["cut"], names(self, "fault", "delete", *at, ""))

        def rerouted():
            return re.search("reroute.* 1 link down, 0 up", self.good("events", *at))

        self.wait_for("a reroute", rerouted)
        self.assertRegex(self.good("events", *at), r"^number  event +virtual time  what\n +1  ")


if __name__ == "__main__":
    unittest.main()
