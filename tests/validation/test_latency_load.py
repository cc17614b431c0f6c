"""Latency and load of a full mesh of 32 hubs and of a dragonfly of 36, beside what queueing theory
gives and what BookSim2 prints.

Links are the only bottleneck: processors feed a hub through eight ports, and every port is faster
than any link's share. Where messages come at random, a link then is an M/D/1 queue: at utilisation
r packets wait r / (2 (1 - r)) times the time of a packet on the link, on average. A link that is
asked for more than it can do carries exactly its rate.

booksim2.tsv has the dragonfly's latencies in BookSim2, in the unit of a flit's time on a link;
booksim/dragonfly.booksim is the file it read, booksim/full_mesh.booksim is the mesh for it. Its
nodes also wait for the channel from their router (eight or 64 nodes share a router), and its
routers' allocators waste cycles, so it waits longer.
"""

import csv
import json
import math
import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("PERCS_BIN_DIR", ROOT / "build" / "bin"))
FLIT_BYTES = 128
W_GB = 96.0  # offered load 1.0, per hub

SCENARIO = """name: latency-load
topology: {topology}
parameters:
  ll: {{rate: {rate}GB/s, wire: 0ps, buffer_flits: 256}}
  lr: {{rate: {rate}GB/s, wire: 0ps, buffer_flits: 256}}
  d: {{rate: {rate}GB/s, wire: 0ps, buffer_flits: 256}}
stop_at: {stop}us
workload:
  pattern: {{pattern: {pattern}, message_bytes: {bytes}B, load: {load:.6f}, warm_up: {warm_up}us,
            measure: {measure}us}}
"""


def waiting(utilisation):
    """Of an M/D/1 queue, in service times."""
    return utilisation / (2 * (1 - utilisation))


class FullMesh:
    name = "full_mesh"
    topology = "{supernodes: 1, drawers: 4, hubs: 8}"
    rate = 2.4  # GB/s of a link: 31 of them take 74 of the 96 GB/s that a hub can send
    warm_up, measure = 60, 240

    @staticmethod
    def utilisation(flits):
        """Of the busiest link, for so many flits per hub and flit time."""
        return flits / 31

    def expected(self, flits):
        return waiting(flits / 31)


class Dragonfly:
    """Nine groups of four hubs, two links to other groups at each hub; routes are minimal."""

    name = "dragonfly"
    topology = "{supernodes: 9, drawers: 1, hubs: 4, d_links_per_pair: 1}"
    rate = 12.8
    warm_up, measure = 30, 100

    @staticmethod
    def utilisation(flits):
        # A link of a group: its own hubs' traffic for each other, what goes to one of the two
        # groups behind its far end (4 hubs each), and what came in over two links at its near end.
        return flits * (1 + 8 + 8) / 35

    def expected(self, flits):
        within, between = waiting(flits * 17 / 35), waiting(flits * 16 / 35)
        # Three of four hubs of a group have not got the link that is needed.
        return 3 / 35 * within + 32 / 35 * (2 * 3 / 4 * within + between)


class Point:
    def __init__(self, network, packet_flits, flits, pattern="uniform"):
        load = flits * network.rate / W_GB
        text = SCENARIO.format(topology=network.topology, rate=network.rate, pattern=pattern,
                               bytes=packet_flits * FLIT_BYTES, load=load, warm_up=network.warm_up,
                               measure=network.measure, stop=network.warm_up + network.measure)
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(text)
            file.flush()
            run = subprocess.run([str(BIN / "percsctl"), "run", file.name, "--format", "json"],
                                 capture_output=True, text=True, timeout=280)
        if run.returncode != 0:
            raise AssertionError(f"{text}\n{run.stderr}")
        report = json.loads(run.stdout)
        packet_time = packet_flits * FLIT_BYTES / network.rate  # ns
        # None where packets of the measurement are still under way at its end.
        self.packets = (report["latency_ns"]["packet"]["mean"] or math.nan) / packet_time
        measured = report["measured"]
        self.flits = measured["accepted_bytes_per_second_per_hub"] / 1e9 / network.rate


class LatencyLoadTest(unittest.TestCase):
    def test_a_link_is_an_m_d_1_queue(self):
        for network in (FullMesh(), Dragonfly()):
            most = 1 / network.utilisation(1)
            for packet_flits in (1, 16):
                empty = Point(network, packet_flits, 0.005 * most)
                for share in (0.3, 0.6, 0.8):
                    with self.subTest(network=network.name, flits=packet_flits, share=share):
                        point = Point(network, packet_flits, share * most)
                        waits = point.packets - empty.packets
                        expected = network.expected(point.flits)
                        self.assertAlmostEqual(waits, expected, delta=0.12 * expected + 0.1)

    def test_an_overloaded_link_carries_its_rate(self):
        mesh = FullMesh()
        for pattern, links in (("uniform", 31), ("neighbor", 1), ("tornado", 1), ("bitcomp", 1),
                               ("randperm", 1)):
            with self.subTest(pattern=pattern):
                self.assertAlmostEqual(Point(mesh, 16, 1.2 * links, pattern).flits, links,
                                       delta=0.02 * links)

    def test_booksim2_has_the_same_curve(self):
        networks = {network.name: network for network in (FullMesh(), Dragonfly())}
        lines = [line for line in (pathlib.Path(__file__).parent / "booksim2.tsv").read_text()
                 .splitlines() if not line.startswith("#")]
        rows = list(csv.DictReader(lines, delimiter="\t"))
        self.assertGreater(len(rows), 6)
        empty = {}
        for row in rows:
            network, packet_flits = networks[row["network"]], int(row["packet_flits"])
            flits, latency = float(row["flits_per_router"]), float(row["latency"]) / packet_flits
            key = row["network"], packet_flits
            if key not in empty:  # the lowest load comes first
                empty[key] = latency, Point(network, packet_flits, flits).packets
                continue
            with self.subTest(network=network.name, flits=packet_flits, load=flits):
                waits = Point(network, packet_flits, flits).packets - empty[key][1]
                theirs = latency - empty[key][0]
                self.assertLess(waits, theirs + 0.1)
                self.assertGreater(waits, 0.6 * theirs - 0.1)


if __name__ == "__main__":
    unittest.main()
