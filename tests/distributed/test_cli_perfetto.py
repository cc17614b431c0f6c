"""percsctl trace --format perfetto: protoc decodes it, and it says what the trace's own hops say.

Method: the same packets as JSON and as a Perfetto trace, which protoc turns into text against the
schema. Slices of outputs are the grants, slices of buffers the hops with their waits, flows lead
along the hops; on every track slices nest, in picoseconds and in nanoseconds.
"""

import re
import subprocess
import unittest

from test_cli import LIMIT_SECONDS, ROOT, SCENARIOS, USAGE, CliTest

SCHEMA = ROOT / "client" / "percsctl" / "perfetto_trace.proto"
# Packets that wait for a link when it is cut, and are lost with it; and some that are not.
ARGUMENTS = (SCENARIOS / "link-failure.yaml", "--from", "sn0-d1-h0", "--since", "20us", "--count",
             300)


def message(lines):
    """One message of protoc's text, as a dictionary of lists."""
    found = {}
    for line in lines:
        line = line.strip()
        if line == "}":
            break
        if line.endswith("{"):
            found.setdefault(line[:-2], []).append(message(lines))
        else:
            name, _, text = line.partition(": ")
            found.setdefault(name, []).append(value_of(text))
    return found


def value_of(text):
    if text.startswith('"'):
        return text[1:-1]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


class PerfettoTest(CliTest):
    def trace(self, *arguments):
        """Tracks by uuid, and events in order: (track, time, type, name, flows, event)."""
        self.good("trace", *arguments, "--format", "perfetto", "-o", "x.perfetto-trace")
        with open(self.folder / "x.perfetto-trace", "rb") as trace:
            done = subprocess.run(
                ["protoc", f"-I{SCHEMA.parent}", "--decode=percs.perfetto.Trace", SCHEMA],
                stdin=trace, text=True, capture_output=True, timeout=LIMIT_SECONDS)
        self.assertEqual(0, done.returncode, done.stderr)
        packets = message(iter(done.stdout.splitlines()))["packet"]
        descriptors = [p["track_descriptor"][0] for p in packets if "track_descriptor" in p]
        names = {d["uuid"][0]: d["name"][0] for d in descriptors}
        parents = {d["uuid"][0]: d["parent_uuid"][0] for d in descriptors if "parent_uuid" in d}
        tracks = {uuid: (names[parent], names[uuid]) for uuid, parent in parents.items()
                  if uuid not in parents.values()}
        # Nodes by their name: the group that they are in, if any.
        self.groups = {names[uuid]: names.get(parents.get(uuid)) for uuid in parents.values()}
        events = []
        for p in packets:
            if "track_event" not in p:
                continue
            e = p["track_event"][0]
            events.append((tracks[e["track_uuid"][0]], p.get("timestamp", [0])[0],
                           e["type"][0].removeprefix("TYPE_"), e.get("name", [""])[0],
                           e.get("flow_ids", []) + e.get("terminating_flow_ids", []), e))
        self.assertEqual(sorted(e[1] for e in events), [e[1] for e in events])
        return tracks, events

    def slices(self, events):
        """(track, begin, end, name, depth), and fails where slices do not nest."""
        found, open_ = [], {}
        for track, at, kind, name, _, e in events:
            stack = open_.setdefault(track, [])
            if kind == "SLICE_BEGIN":
                if stack:
                    self.assertLessEqual(stack[-1][0], at)
                stack.append((at, name))
            elif kind == "SLICE_END":
                begin, name = stack.pop()
                self.assertLessEqual(begin, at)
                found.append((track, begin, at, name, len(stack)))
        self.assertEqual([], [track for track, stack in open_.items() if stack])
        return found

    def test_slices_are_the_grants_and_the_hops_with_their_waits(self):
        packets = self.good_json("trace", *ARGUMENTS)["packets"]
        self.assertTrue(any(p["drops"] for p in packets))
        found = self.slices(self.trace(*ARGUMENTS)[1])
        outputs, buffers, waits = [], [], []
        for p in packets:
            name = f"{p['source']} {p['sequence']} to {p['destination']}"
            for hop in p["hops"]:
                for g in hop["grants"]:
                    outputs.append((hop["node"], f"out {hop['out']} VC {hop['out_vc']}", g["at_ps"],
                                    g["until_ps"], name))
                    waits += [(reason, ps) for reason, ps in g["waited_ps"].items() if ps]
                buffers.append((hop["node"], f"in {hop['in']} VC {hop['in_vc']}",
                                hop["arrived_ps"], name))
        self.assertCountEqual(outputs, [
            (node, track, begin, end, name) for (node, track), begin, end, name, _ in found
            if track.startswith("out ")])
        self.assertCountEqual(buffers, [
            (node, re.sub(r" #\d+$", "", track), begin, name)
            for (node, track), begin, _, name, depth in found
            if track.startswith("in ") and depth == 0])
        self.assertCountEqual(waits, [
            (name, end - begin) for (_, track), begin, end, name, depth in found
            if track.startswith("in ") and depth == 1 and not name.startswith("sent ")])
        for p in packets:
            if p["hops"]:
                self.assertLessEqual(p["hfi_wait_ps"],
                                     p["hops"][0]["arrived_ps"] - p["created_ps"])

    def test_flows_lead_along_the_hops_to_where_the_packet_ended(self):
        packets = self.good_json("trace", *ARGUMENTS)["packets"]
        ways = {}
        for (node, track), at, kind, _, flows, e in self.trace(*ARGUMENTS)[1]:
            for flow in flows:
                ways.setdefault(flow, []).append((at, node, kind, "terminating_flow_ids" in e))
        self.assertEqual(list(range(1, len(packets) + 1)), sorted(ways))
        for number, p in enumerate(packets, 1):
            way = ways[number]
            self.assertEqual((p["created_ps"], p["source"]), way[0][:2])
            self.assertEqual([False] * (len(way) - 1) + [True], [step[3] for step in way])
            ends = {(d["at_ps"], d["node"]) for d in p["deliveries"] + p["drops"]}
            self.assertIn(way[-1][:2], ends)
            self.assertEqual(list(dict.fromkeys(h["node"] for h in p["hops"])), list(dict.fromkeys(
                node for _, node, kind, _ in way if kind == "SLICE_BEGIN")))

    def test_crossbars_of_roadrunner_are_grouped_by_their_level(self):
        # Between triblades of two CUs: over leaves and switches.
        arguments = (SCENARIOS / "roadrunner.yaml", "--from", "triblade0", "--count", 50)
        packets = self.good_json("trace", *arguments)["packets"]
        passed = {hop["node"] for p in packets for hop in p["hops"]}
        self.trace(*arguments)
        levels = {"leaf": "leaves", "spine": "spines", "a": "switches, A", "b": "switches, B"}
        for node in passed:
            level = re.fullmatch(r"(?:cu\d+-(leaf|spine)|sw\d+-([abc]))\d+", node)
            wanted = level and f"crossbars: {levels[level[1] or level[2]]}"
            self.assertEqual(wanted, self.groups[node])
        self.assertLessEqual({"crossbars: leaves", "crossbars: switches, A",
                              "crossbars: switches, B"}, set(self.groups))

    def test_rounding_to_nanoseconds_keeps_the_nesting(self):
        exact, rounded = (self.slices(self.trace(*ARGUMENTS, "--scale", scale)[1])
                          for scale in ("ps", "ns"))
        self.assertCountEqual([(track, begin // 1000, end // 1000, name, depth)
                               for track, begin, end, name, depth in exact], rounded)

    def test_counters_say_how_many_packets_are_in_buffers_and_how_busy_outputs_are(self):
        tracks, events = self.trace(SCENARIOS / "two-hubs.yaml", "--count", 200)
        last, busy = {}, []
        for (node, track), _, kind, _, _, e in events:
            if kind != "COUNTER":
                continue
            value = e.get("double_counter_value", [0])[0]
            self.assertGreaterEqual(value, 0)
            if track == "in buffers":
                last[node] = value
            else:
                busy.append(value)
        self.assertEqual({"sn0-d0-h0": 0, "sn0-d0-h1": 0}, last)
        self.assertLessEqual(max(busy), 100)
        self.assertGreater(max(busy), 10)

    def test_every_rank_has_a_track_with_what_it_did(self):
        for scenario in ("trace-replay.yaml", "collective.yaml"):
            with self.subTest(scenario=scenario):
                slices = self.good_json("trace", SCENARIOS / scenario)["rank_slices"]
                self.assertLessEqual({"waiting"}, {s["state"] for s in slices})
                found = self.slices(self.trace(SCENARIOS / scenario)[1])
                self.assertCountEqual(
                    [(s["node"], f"rank {s['rank']}", s["begin_ps"], s["end_ps"], s["state"])
                     for s in slices],
                    [(node, track, begin, end, name) for (node, track), begin, end, name, _
                     in found if track.startswith("rank ")])
                if scenario != "trace-replay.yaml":
                    continue
                # What the result says of each rank is the sum of its slices.
                sums = {}
                for s in slices:
                    key = s["rank"], {"sending": "overhead", "receiving": "overhead",
                                      "computing": "calc"}.get(s["state"], s["state"])
                    sums[key] = sums.get(key, 0) + s["end_ps"] - s["begin_ps"]
                for rank in self.good_json("run", SCENARIOS / scenario)["ranks"]:
                    for what in ("calc", "overhead", "waiting"):
                        self.assertAlmostEqual(rank[f"{what}_ns"] * 1000,
                                               sums.get((rank["rank"], what), 0), delta=1)

    def test_every_spe_has_tracks_with_its_dma(self):
        for scenario in ("cell-blades.yaml", "triblades.yaml"):
            with self.subTest(scenario=scenario):
                commands = self.good_json("trace", SCENARIOS / scenario)["dma_slices"]
                self.assertGreater(len(commands), 100)
                found = [s for s in self.slices(self.trace(SCENARIOS / scenario)[1])
                         if " DMA" in s[0][1]]
                expected = []
                for c in commands:
                    self.assertLessEqual(c["issued_ps"], c["started_ps"])
                    self.assertLess(c["started_ps"], c["done_ps"])
                    track = c["node"], f"SPE {c['spe']} DMA"
                    expected.append((*track, c["issued_ps"], c["done_ps"], 0))
                    expected.append((*track, c["started_ps"], c["done_ps"], 1))
                    if c["started_ps"] > c["issued_ps"]:
                        expected.append((*track, c["issued_ps"], c["started_ps"], 1))
                self.assertCountEqual(expected, [
                    (node, track.partition(" #")[0], begin, end, depth)
                    for (node, track), begin, end, _, depth in found])
        # What the counters of the blades say, where all commands are kept.
        result = self.good_json("run", SCENARIOS / "cell-blades.yaml")
        commands = self.good_json("trace", SCENARIOS / "cell-blades.yaml")["dma_slices"]
        moved = [c for c in commands if c["kind"] != "signal"]
        self.assertEqual(result["blades"]["dma_commands"], len(moved))
        self.assertEqual(result["blades"]["dma_bytes"], sum(c["bytes"] for c in moved))

    def test_a_run_writes_the_trace_of_the_same_packets(self):
        scenario = SCENARIOS / "two-hubs.yaml"
        plain = self.good_json("run", scenario)["digest"]
        traced = self.good_json("run", scenario, "--perfetto", "run", "--perfetto-every", 3)
        self.assertEqual(plain, traced["digest"])
        self.good("trace", scenario, "--every", 3, "--count", 1000, "--format", "perfetto", "-o",
                  "trace")
        self.assertEqual((self.folder / "run").read_bytes(), (self.folder / "trace").read_bytes())

    def test_a_capture_goes_to_a_file_or_a_pipe(self):
        self.good("trace", SCENARIOS / "two-hubs.yaml", "--format", "perfetto", "-o", "x")
        done = self.ctl("trace", SCENARIOS / "two-hubs.yaml", "-o", "y")
        self.assertEqual(USAGE, done.returncode)
        self.assertIn("--output is for captures", done.stderr)
        done = self.ctl("trace", SCENARIOS / "two-hubs.yaml", "--kind", "none")
        self.assertIn("no kind of packet is called none", done.stderr)


if __name__ == "__main__":
    unittest.main()
