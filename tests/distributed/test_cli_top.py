"""percsctl top on terminals of two sizes: what it shows, and what its keys do to the fabric."""

import re
import unittest

from test_cli import BIN, FAILED, LIMIT_SECONDS, CliTest
from tests.support.terminal import Terminal

ENDLESS = """\
name: endless
topology: {supernodes: 1, drawers: 4, hubs: 8}
workload:
  pattern: {pattern: uniform, load: 0.05, reliable: true}
run: {clock: live, pace: 20us/s}
"""
HUB = re.compile(r"^sn0-d\d-h\d +[\d.]+ % +[\d.]+ % +[\d.]+ \S+/s +[\d,]+ +[\d,]+", re.M)
LINK = re.compile(r"(sn0-d\d-h\d:L[LR]\d+) +(up|DOWN) +([\d.]+) % +([\d.]+) % sn0-d\d-h\d")


def whole(text):
    """Whether the last line has been drawn to its end."""
    return text.rstrip().endswith("p pause/resume")


class TopTest(CliTest):
    def setUp(self):
        super().setUp()
        self.good("up", "--daemons", 2)
        self.good("apply", self.write("endless.yaml", ENDLESS))

    def top(self, columns, lines, *arguments):
        terminal = Terminal((BIN / "percsctl", "top", "--interval", "wall:100ms", *arguments),
                            columns, lines, self.env)
        self.addCleanup(terminal.close)
        terminal.wait(lambda text: HUB.search(text) and LINK.search(text) and whole(text),
                      LIMIT_SECONDS)
        return terminal

    def phase(self):
        return self.good_json("status")["state"]

    def down(self):
        return [link["name"] for link in self.good_json("links", "--down")["links"]]

    def test_all_of_it_is_there_on_80_by_24_and_on_120_by_40(self):
        for columns, lines, hubs, links in ((80, 24, 8, 9), (120, 40, 32, 34)):
            with self.subTest(columns=columns):
                terminal = self.top(columns, lines)
                text = terminal.wait(lambda t: re.search(r"delivered [1-9]", t) and whole(t),
                                     LIMIT_SECONDS)
                self.assertRegex(text, r"^default: running  endless  run 1  32 hubs  2 of 2 "
                                       r"daemons")
                self.assertRegex(text, r"virtual [\d.]+\ws  wall .*, [\d.]+\ws/s of 20us/s  "
                                       r"[\d,]+ windows/s")
                self.assertRegex(text, r"delivered [\d,]+  dropped 0 \(\+0\)  resent 0  down 0  "
                                       r"faults 0  reroutes 0")
                self.assertEqual(hubs, len(HUB.findall(text)), text)
                self.assertEqual(links, len(LINK.findall(text)), text)
                self.assertNotIn("~", text, "nothing is cut off")

    def test_keys_sort_select_cut_restore_and_pause(self):
        terminal = self.top(80, 24)
        terminal.press("s")
        terminal.wait(lambda t: "s sort: drops" in t, LIMIT_SECONDS)
        terminal.press("s")
        text = terminal.wait(lambda t: "s sort: name" in t and whole(t), LIMIT_SECONDS)
        shown = [name for name, *_ in LINK.findall(text)]
        names = [link["name"] for link in self.good_json("links")["links"]]
        self.assertEqual(names[:len(shown)], shown)  # no key has selected one
        terminal.press("c")
        terminal.wait(lambda t: re.search(r"cut \S+\? \d+ pairs of hubs with a route over it", t),
                      LIMIT_SECONDS)
        terminal.press("n")
        terminal.wait(lambda t: "s sort: name" in t, LIMIT_SECONDS)
        self.assertEqual([], self.down())
        terminal.press("c")
        asked = terminal.wait(lambda t: "of hubs with a route over it" in t, LIMIT_SECONDS)
        link = re.search(r"cut (\S+)\?", asked)[1]
        terminal.press("y")
        terminal.wait(lambda t: re.search(rf"{link} +DOWN", t) and "down 1  faults 1" in t,
                      LIMIT_SECONDS)
        self.assertEqual([link], self.down())
        terminal.press("c")
        terminal.wait(lambda t: "down 0  faults 0" in t, LIMIT_SECONDS)
        self.assertEqual([], self.down())
        terminal.press("p")
        terminal.wait(lambda t: t.startswith("default: paused"), LIMIT_SECONDS)
        self.assertEqual("paused", self.phase())
        terminal.press("p")
        terminal.wait(lambda t: t.startswith("default: running"), LIMIT_SECONDS)
        terminal.press("q")
        self.assertEqual(0, terminal.process.wait(LIMIT_SECONDS))

    def test_without_a_terminal_it_says_what_prints_the_same(self):
        done = self.ctl("top")
        self.assertEqual(FAILED, done.returncode)
        self.assertIn("needs a terminal; `percsctl status`, `links` and `counters`", done.stderr)


if __name__ == "__main__":
    unittest.main()
