"""percsctl plot: pictures that show the numbers of their files, with labels that do not overlap."""

import json
import re
import unittest
import xml.etree.ElementTree

from test_cli import BAD_INPUT, FAILED, OK, SCENARIOS, USAGE, CliTest

PATTERN = """\
name: {name}
topology: {{supernodes: 2, drawers: 1, hubs: 2, d_links_per_pair: 2}}
workload:
  pattern: {{pattern: uniform, message_bytes: 2KiB, load: {load}, warm_up: 5us, measure: 20us}}
"""
WIDTH, HEIGHT = 0.62, 0.95  # of a letter, as shares of the size of its font


def boxes(svg):
    """(text, left, top, right, bottom) of the labels of an SVG of gnuplot's, about."""
    found = []
    for group in re.finditer(
            r'<g transform="translate\(([\d.]+),([\d.]+)\)( rotate\((-?[\d.]+)\))?"([^>]*)>\s*'
            r"<text>(.*?)</text>", svg, re.S):
        x, y, angle = float(group[1]), float(group[2]), float(group[4] or 0)
        size = float(re.search(r'font-size="([\d.]+)"', group[5])[1])
        text = "".join(xml.etree.ElementTree.fromstring(f"<t>{group[6]}</t>").itertext()).strip()
        long, high = WIDTH * size * len(text), HEIGHT * size
        anchor = re.search(r'text-anchor="(\w+)"', group[5])
        begin = {"start": 0, "middle": -long / 2, "end": -long}[anchor[1] if anchor else "start"]
        if angle:  # upwards
            found.append((text, x - high, y - begin - long, x, y - begin))
        else:
            found.append((text, x + begin, y - high, x + begin + long, y))
    return [box for box in found if box[0]]


class PlotTest(CliTest):
    def result(self, name, scenario, *arguments):
        done = self.good("run", scenario, *arguments, "--format", "json")
        return self.write(name, done)

    def draw(self, *arguments):
        self.good("plot", *arguments, "-o", "picture.svg")
        svg = (self.folder / "picture.svg").read_text()
        self.assertTrue(self.good("plot", *arguments, "-o", "picture.png"))
        self.assertEqual(b"\x89PNG", (self.folder / "picture.png").read_bytes()[:4])
        labels = boxes(svg)
        self.assertGreater(len(labels), 5)
        width, height = map(float, re.search(r'viewBox="0 0 (\d+) (\d+)"', svg).groups())
        for i, (text, left, top, right, bottom) in enumerate(labels):
            self.assertTrue(left >= 0 and top >= 0 and right <= width and bottom <= height,
                            f"{text!r} is cut off")
            for other, l, t, r, b in labels[:i]:
                self.assertFalse(left < r and l < right and top < b and t < bottom,
                                 f"{text!r} and {other!r} overlap")
        return {label[0] for label in labels}

    def test_latencies_of_results_and_of_traces(self):
        self.result("a.json", self.write("a.yaml", PATTERN.format(name="quiet", load=0.1)))
        trace = self.good("trace", "a.yaml", "--count", 50, "--format", "json")
        self.write("t.json", trace)
        self.assertLessEqual({"quiet", "traced", "packet latency (ns, virtual)"},
                             self.draw("latency", "a.json", "traced=t.json"))
        packet = json.loads((self.folder / "a.json").read_text())["latency_ns"]["packet"]
        self.assertEqual(packet["count"], sum(b["count"] for b in packet["buckets"]))
        for b in packet["buckets"]:
            self.assertLess(b["from"], b["to"])
        self.assertLessEqual(packet["buckets"][-1]["from"], packet["max"])
        self.assertLess(packet["max"], packet["buckets"][-1]["to"])

    def test_curves_of_several_results(self):
        files = []
        for load in (0.05, 0.1, 0.2):
            for mode in ("hw_direct", "sw_indirect"):
                name = f"{mode}-{load}.json"
                self.result(name, self.write("c.yaml", PATTERN.format(name="c", load=load)))
                files.append(f"{mode}={name}")
        self.assertLessEqual({"hw_direct", "sw_indirect", "accepted load (GB/s per hub)"},
                             self.draw("curves", *files))
        # One point that is not saturated, then none: axes are those of all points.
        for load in (0.6, 0.9):
            scenario = self.write("c.yaml", PATTERN.format(name="c", load=load))
            self.result(f"high-{load}.json", scenario)
        saturated = [f"h=high-{load}.json" for load in (0.6, 0.9)]
        self.draw("curves", "h=hw_direct-0.05.json", *saturated)
        self.assertIn("every point is saturated", self.draw("curves", *saturated))

    def test_load_over_time_and_ranks(self):
        self.write("t.json", self.good("trace", SCENARIOS / "supernode-alltoall.yaml",
                                       "--count", 20, "--format", "json"))
        self.assertLessEqual({"LL", "LR", "HFI", "sent (GB/s)"}, self.draw("load", "t.json"))
        self.result("r.json", SCENARIOS / "trace-replay.yaml")
        self.assertLessEqual({"computing", "waiting", "rank", "0", "31"},
                             self.draw("ranks", "r.json"))
        self.write("s.json", self.good("trace", SCENARIOS / "trace-replay.yaml",
                                       "--format", "json"))
        self.assertLessEqual({"computing", "sending", "receiving", "waiting", "rank", "0", "31",
                              "virtual time (us)"}, self.draw("ranks", "s.json"))

    def test_links_of_a_fabric_and_of_a_file(self):
        self.good("up", "--daemons", 1)
        self.good("apply", SCENARIOS / "supernode-alltoall.yaml", "--wait")
        links = json.loads(self.good("links", "--format", "json"))
        self.assertLessEqual({"sn0-d0-h0", "sn0-d3-h7"}, self.draw("links"))
        links["links"][7]["up"] = False
        self.write("links.json", json.dumps(links))
        self.assertIn("a link is down", self.draw("links", "links.json"))
        # Of a machine too large to show each hub.
        for i, link in enumerate(links["links"]):
            link["ends"] = link["ends"].replace("sn0", f"sn{i % 8}")
        self.write("large.json", json.dumps(links))
        labels = self.draw("links", "large.json")
        self.assertIn("sn7-d0", labels)
        self.assertNotIn("sn0-d0-h0", labels)

    def test_what_cannot_be_drawn_is_said(self):
        self.write("empty.json", "{}")
        self.write("text.json", "no JSON")
        for code, said, *arguments in (
                (BAD_INPUT, "has no ranks", "ranks", "empty.json"),
                (BAD_INPUT, "has no list", "links", "empty.json"),
                (BAD_INPUT, "measured no offered load", "curves", "empty.json"),
                (BAD_INPUT, "has no packets", "load", "empty.json"),
                (BAD_INPUT, "has no latencies", "latency", "empty.json"),
                (BAD_INPUT, "is no JSON object", "latency", "text.json"),
                (BAD_INPUT, "cannot be read", "latency", "none.json"),
                (USAGE, "needs files", "latency"),
                (USAGE, "KIND", "pie", "empty.json")):
            with self.subTest(arguments):
                done = self.ctl("plot", *arguments, "-o", "x.svg")
                self.assertEqual(code, done.returncode, done.stderr)
                self.assertIn(said, done.stderr)
                self.assertFalse((self.folder / "x.svg").exists())
        done = self.ctl("plot", "latency", "empty.json", "-o", "x.gif")
        self.assertNotIn(done.returncode, (OK, FAILED))


if __name__ == "__main__":
    unittest.main()
