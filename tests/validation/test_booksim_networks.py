"""Dragonflies, flattened butterflies, tori and a fat tree beside BookSim2: the same switches,
channels and traffic.

booksim/networks.tsv has what BookSim2 printed for booksim/NETWORK.booksim. One of its cycles is
1 ns here, a flit of 128 bytes at 128 GB/s. A channel of c cycles is a wire of c - 1 ns, because the
flit takes one; `isr_latency` is the delay of its router. Two things are converted. Its nodes also
send to themselves, over their router and no channel; such packets are left out, and the load with
them. And its packets enter the channel to the router one cycle after they were created.

`python3 test_booksim_networks.py` with the argument --table prints the rows of docs/topologies.md.
"""

import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("PERCS_BIN_DIR", ROOT / "build" / "bin"))
TABLE = pathlib.Path(__file__).parent / "booksim" / "networks.tsv"
FULL_LOAD = 128e9  # bytes per second of an endpoint

SCENARIO = """name: booksim
seed: 1
topology: {{{topology}}}
parameters:
  ll: {{rate: 128GB/s, wire: {local}ns, buffer_flits: {buffer}}}
  d: {{wire: {remote}ns}}
  isr_latency: {router}ns
  credit_processing: 2ns
workload:
  pattern: {{pattern: uniform, injection: bernoulli, message_bytes: 128B, load: {load:.6f},
            {phases}}}
"""


class Network:
    def __init__(self, topology, switches, endpoints, local, remote, buffer):
        self.topology, self.endpoints, self.buffer = topology, endpoints, buffer
        self.nodes = switches * endpoints
        self.local, self.remote = local - 1, remote - 1  # cycles of a channel, less the flit's


NETWORKS = {
    "flatfly_k32": Network("kind: full_mesh, a: 32, p: 1", 32, 1, 1, 1, 64),
    "flatfly_k16": Network("kind: full_mesh, a: 16, p: 4", 16, 4, 1, 1, 64),
    "dragonfly_k2": Network("kind: dragonfly, a: 4, g: 9, h: 2, p: 2", 36, 2, 10, 100, 256),
    "dragonfly_k4": Network("kind: dragonfly_1056", 264, 4, 10, 100, 256),
    "torus_8x8": Network("kind: torus, dims: 8x8", 64, 1, 1, 1, 64),
    "torus_4x4x4": Network("kind: torus, dims: 4x4x4", 64, 1, 1, 1, 64),
    "fattree_k4_n3": Network("kind: fat_tree, levels: 3, radix: 8, p: 4", 16, 4, 1, 1, 64),
}


class Point:
    """A row of the table, converted, and what comes out here."""

    def __init__(self, row):
        self.network = NETWORKS[row["network"]]
        self.name, self.options = row["network"], row["options"]
        self.router, self.load = int(row["router"]), float(row["injection_rate"])
        nodes = self.network.nodes
        others = (nodes - 1) / nodes  # share of packets to other nodes
        self.their_latency = self.their_accepted = None
        if row["latency"] != "-":
            to_itself = self.router + 3
            self.their_latency = (float(row["latency"]) - to_itself / nodes) / others - 1
        self.their_accepted = float(row["accepted"])
        self.latency, accepted = self.run(self.load * others)
        self.accepted = accepted / others

    def run(self, load):
        # Of full load nothing is steady.
        phases = "warm_up: 10us, measure: 10us"
        if load < 0.95:
            measure = 90 if load < 0.1 and self.network.nodes < 1000 else 30
            phases = f"measure: {measure}us, auto_warm_up: true, drain: 5us"
        n = self.network
        text = SCENARIO.format(topology=n.topology, local=n.local, remote=n.remote,
                               buffer=n.buffer, router=self.router, load=load, phases=phases)
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(text)
            file.flush()
            done = subprocess.run([str(BIN / "percsctl"), "run", file.name, "--format", "json"],
                                  capture_output=True, text=True, timeout=280)
        if done.returncode != 0:
            raise AssertionError(f"{text}\n{done.stderr}")
        report = json.loads(done.stdout)
        accepted = report["measured"]["accepted_bytes_per_second_per_hub"]
        return report["latency_ns"]["packet"]["mean"], accepted / FULL_LOAD / n.endpoints


def points():
    lines = [line for line in TABLE.read_text().splitlines() if not line.startswith("#")]
    return [Point(row) for row in csv.DictReader(lines, delimiter="\t")]


def table():
    print("| network | router | offered | latency: BookSim2 | here | difference | accepted: "
          "BookSim2 | here |\n" + "| --- " * 8 + "|")
    for point in points():
        latencies = "- | - | -"
        if point.their_latency is not None:
            latencies = (f"{point.their_latency:.2f} | {point.latency:.2f} | "
                         f"{point.latency / point.their_latency - 1:+.1%}")
        print(f"| `{point.name}` | {point.router} | {point.load:g} | {latencies} | "
              f"{point.their_accepted:.3f} | {point.accepted:.3f} |")


class BookSimNetworksTest(unittest.TestCase):
    def test_latencies_and_saturation_are_those_of_routers_whose_crossbar_is_fast_enough(self):
        seen = points()
        self.assertEqual(50, len(seen))
        for point in seen:
            # With a crossbar twice as fast as a channel routers there waste cycles.
            slow = point.name in ("dragonfly_k2", "torus_8x8") and point.router == 2
            with self.subTest(network=point.name, options=point.options, load=point.load):
                if point.their_latency is None:
                    if slow:
                        self.assertLess(point.their_accepted, 0.9)
                        self.assertGreater(point.accepted, 0.85)
                    else:
                        self.assertAlmostEqual(point.accepted / point.their_accepted, 1, delta=0.05)
                elif point.load < 0.1:
                    self.assertAlmostEqual(point.latency, point.their_latency, delta=0.5)
                else:
                    self.assertLess(point.latency, 1.06 * point.their_latency)
                    if not slow or point.load < 0.7:
                        self.assertGreater(point.latency, 0.94 * point.their_latency)


if __name__ == "__main__":
    if sys.argv[1:] == ["--table"]:
        table()
    else:
        unittest.main()
