"""Wireshark reads captures of percsctl, and finds in them what percsctl itself says.

Method: `percsctl trace --format pcapng` of scenarios that together have packets of every kind;
Debian's tshark decodes them with the shipped dissector. Golden fields come from what the scenario
says; times, hops and waits are compared with `percsctl trace --format json` of the same packets.
"""

import ipaddress
import json
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("PERCS_BIN_DIR", ROOT / "build" / "bin"))
SCENARIOS = ROOT / "deploy" / "scenarios"
DISSECTOR = ROOT / "deploy" / "wireshark" / "percs.lua"
LIMIT_SECONDS = 100

IMMEDIATE, FIFO, IP, FRAGMENT, WRITE, WRITE_FIFO, READ, READ_DATA, ATOMIC, ATOMIC_ANSWER, ANSWER = (
    range(11))
RAW, DATA, ACK, CAU, MANAGEMENT, WINDOW, OPERATION = range(7)
CREATED, SENT, DELIVERED, DROPPED = range(4)
WAITS = ("queue", "serialisation", "arbitration", "vc", "credit", "replay")
# Packets that wait for a link when it is cut, and are lost with it.
LOST = (SCENARIOS / "link-failure.yaml", "--from", "sn0-d1-h0", "--to", "sn0-d0-h0", "--since",
        "20us", "--count", 60)

FORMATS = """\
name: formats
seed: 1
topology: {{supernodes: 2, drawers: 1, hubs: 2}}
workload:
  windows:
  - name: sender
    hub: sn0-d0-h0
    steps:
    - reserve: {{window: 0}}
    - fifos: {{}}
    - register: {{address: 16MiB, bytes: 64KiB}}
{memory}
    - await: {{until: 20us}}
    - immediate_send: {{to: sn0-d0-h1, bytes: 100B, pattern: 1}}
    - fifo_send: {{to: sn0-d0-h1, bytes: 2000B, pattern: 2}}
    - ip_send: {{to: sn0-d0-h1, bytes: 3000B, from: 16MiB}}
    - rdma_write: {{hub: sn1-d0-h1, bytes: 4KiB, notify: true}}
    - rdma_write: {{hub: sn1-d0-h1, bytes: 100B, to_fifo: true}}
    - rdma_read: {{hub: sn1-d0-h1, bytes: 1KiB}}
    - atomic:
        hub: sn1-d0-h1
        updates:
        - {{operation: compare_swap, size: 4, address: 16385KiB, operand: 7, compare: 9}}
        - {{operation: add, size: 8, address: 16385KiB, operand: 5, fetch: false}}
  - name: near
    hub: sn0-d0-h1
    steps:
    - reserve: {{window: 0}}
    - fifos: {{}}
    - register: {{address: 16MiB, bytes: 64KiB}}
    - ip_receive: {{address: 16MiB, bytes: 60KiB}}
  - name: far
    hub: sn1-d0-h1
    steps:
    - reserve: {{window: 0}}
    - fifos: {{}}
    - register: {{address: 16MiB, bytes: 64KiB}}
    - await: {{until: 1ms}}
"""


def checksum(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def echo_request(length):
    """An IP datagram of `length` bytes: an ICMP echo request from 10.0.0.1 to 10.0.0.2."""
    def icmp(found):
        return struct.pack(">BBHHH", 8, 0, found, 0x4242, 7) + bytes(length - 28)

    def header(found):
        return struct.pack(">BBHHHBBH4s4s", 0x45, 0, length, 99, 0, 64, 1, found,
                           ipaddress.ip_address("10.0.0.1").packed,
                           ipaddress.ip_address("10.0.0.2").packed)
    return header(checksum(header(0))) + icmp(checksum(icmp(0)))


def as_writes(data, address):
    """Steps of a program that put its bytes, but for zeros, into its memory."""
    return "\n".join(
        f"    - write: {{address: {address + at}B, bytes: 4B, number: {word}}}"
        for at in range(0, len(data), 4)
        if (word := int.from_bytes(data[at:at + 4], "little")))


@unittest.skipUnless(shutil.which("tshark"), "tshark is not there; see deploy/install")
class WiresharkTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="percs-wireshark-")
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.env = dict(os.environ, HOME=str(self.folder), XDG_STATE_HOME=str(self.folder))

    def ran(self, *command):
        done = subprocess.run([str(c) for c in command], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env=self.env, timeout=LIMIT_SECONDS)
        self.assertEqual(0, done.returncode, done.stderr)
        return done.stdout

    def capture(self, name, *arguments):
        file = self.folder / f"{name}.pcapng"
        self.ran(BIN / "percsctl", "trace", *arguments, "--format", "pcapng", "-o", file)
        return file

    def layers(self, file, display=None):
        """The layers of each record that the filter shows."""
        chosen = ("-Y", display) if display else ()
        text = self.ran("tshark", "-X", f"lua_script:{DISSECTOR}", "-r", file, "-T", "json",
                        "--no-duplicate-keys", *chosen)
        return [record["_source"]["layers"] for record in json.loads(text)]

    def frames(self, file, display=None):
        """percs' own fields of each record, in one dictionary."""
        def fields(tree, into):
            for name, value in tree.items():
                if isinstance(value, dict):
                    fields(value, into)
                elif isinstance(value, list) and isinstance(value[0], dict):
                    into[name.removeprefix("percs.")] = [fields(part, {}) for part in value]
                else:
                    into[name.removeprefix("percs.")] = value
            return into
        return [fields(layer["percs"], {}) for layer in self.layers(file, display)]

    def packets(self, *arguments):
        return json.loads(self.ran(BIN / "percsctl", "trace", *arguments, "--format",
                                   "json"))["packets"]

    def formats(self, data):
        file = self.folder / "formats.yaml"
        file.write_text(FORMATS.format(memory=as_writes(data, 16 << 20)))
        return self.capture("formats", file, "--count", 1000)

    def test_packets_between_windows_have_the_fields_that_the_program_gave_them(self):
        file = self.formats(echo_request(3000))
        created = self.frames(file, "percs.event == 0 && percs.window")
        self.assertEqual(
            [IMMEDIATE, FIFO, FRAGMENT, FRAGMENT, WRITE, WRITE, ANSWER, WRITE_FIFO, ANSWER, READ,
             READ_DATA, ATOMIC, ATOMIC_ANSWER], [int(f["window.type"]) for f in created])
        of = {int(f["window.type"]): f for f in reversed(created)}  # the first of each
        self.assertEqual(("5", "100", "sn0-d0-h0", "sn0-d0-h1"),
                         tuple(of[IMMEDIATE][k] for k in ("kind", "bytes", "src", "dst")))
        self.assertEqual(("2000", "16"), (of[FIFO]["bytes"], of[FIFO]["flits"]))
        self.assertEqual(("6", "2048", "4096", "0x0000000001000000", "1", "1"), tuple(
            of[WRITE][k] for k in ("kind", "bytes", "window.length", "window.address", "window.job",
                                   "window.notify")))
        self.assertEqual(("0", "1024"), (of[READ]["bytes"], of[READ]["window.length"]))
        self.assertEqual("0", of[ANSWER]["window.status"])
        updates = of[ATOMIC]["update"]
        self.assertEqual([("4", "4", "1", "7", "9"), ("0", "8", "0", "5", "0")],
                         [tuple(u[f"atomic.{k}"] for k in ("op", "size", "fetch", "operand",
                                                           "compare")) for u in updates])
        self.assertEqual("0x0000000001000400", updates[0]["atomic.address"])
        self.assertEqual("0", of[ATOMIC_ANSWER]["atomic.value"])
        self.assertEqual([], self.layers(file, "_ws.malformed || percs.short || _ws.lua.error"))

    def test_a_datagram_that_the_hfi_took_apart_is_put_together_for_wireshark(self):
        file = self.formats(echo_request(3000))
        whole = self.layers(file, "icmp")
        self.assertEqual(1, len(whole), "where its last part was delivered")
        self.assertEqual(("10.0.0.1", "10.0.0.2", "3000"),
                         tuple(whole[0]["ip"][f"ip.{k}"] for k in ("src", "dst", "len")))
        self.assertEqual(("8", "1", "7"), tuple(whole[0]["icmp"][f"icmp.{k}"]
                                                for k in ("type", "checksum.status", "seq")))

    def compare(self, file, packets):
        """Every record with the packet's own steps, in ps; returns the records by packet."""
        found = {}
        for f in self.frames(file):
            waits = {w: int(f[f"wait.{w}"]) for w in WAITS if f"wait.{w}" in f}
            found.setdefault((f["src"], int(f["sequence"])), []).append(
                (int(f["time"]), int(f["event"]), f["node"], f.get("output", ""),
                 int(f.get("vc", -1)), int(f["flits_sent"]), int(f["until"]), waits))
        self.assertEqual(len(packets), len(found))
        for p in packets:
            wanted = [(p["created_ps"], CREATED, p["source"], "", -1, p["flits"], p["created_ps"],
                       {})]
            for hop in p["hops"]:
                if not hop["grants"]:
                    continue
                waits = {w: s for w in WAITS
                         if (s := sum(g["waited_ps"].get(w, 0) for g in hop["grants"]))}
                wanted.append((hop["grants"][0]["at_ps"], SENT, hop["node"], hop["out"],
                               hop["out_vc"], sum(g["flits"] for g in hop["grants"]),
                               hop["grants"][-1]["until_ps"], waits))
            wanted += [(d["at_ps"], DELIVERED, d["node"], "", -1, p["flits"], d["at_ps"], {})
                       for d in p["deliveries"]]
            records = found[p["source"], p["sequence"]]
            self.assertCountEqual(wanted, [r for r in records if r[1] != DROPPED])
            self.assertCountEqual(
                [(d["at_ps"], d["node"], d["flits"]) for d in p["drops"]],
                [(r[0], r[2], r[5]) for r in records if r[1] == DROPPED])
        return found

    def test_times_hops_and_waits_are_those_of_the_trace_to_the_picosecond(self):
        for name, *arguments in (("supernode-alltoall", "--every", 7, "--count", 2),
                                 ("latency-load", "--count", 2, "--since", "30us"),
                                 ("service-port", "--kind", "all", "--count", 10)):
            arguments = (SCENARIOS / f"{name}.yaml", *arguments)
            with self.subTest(name):
                self.assertGreater(
                    len(self.compare(self.capture(name, *arguments), self.packets(*arguments))), 20)
        self.compare(self.capture("lost", *LOST), self.packets(*LOST))

    def test_packets_of_the_message_layer_caus_and_management_have_their_fields(self):
        file = self.capture("data", SCENARIOS / "supernode-alltoall.yaml", "--count", 200,
                            "--from", "sn0-d0-h0", "--to", "sn0-d0-h1")
        data = self.frames(file, "percs.kind == 1 && percs.event == 0")
        self.assertEqual({"65536"}, {f["message.bytes"] for f in data})
        self.assertEqual(["0", "2048", "4096"],
                         sorted({f["message.offset"] for f in data}, key=int)[:3])
        file = self.capture("acks", SCENARIOS / "supernode-alltoall.yaml", "--count", 10,
                            "--kind", "ack", "--from", "sn0-d0-h0")
        self.assertTrue(self.frames(file, "percs.kind == 2 && percs.ack.missing > 0"))
        file = self.capture("cau", SCENARIOS / "cau-tree.yaml", "--count", 40)
        first = self.frames(file, "percs.cau.type == 0 && percs.cau.operation == 0")[0]
        # Four operands of doubles are summed (cau-tree.yaml).
        self.assertEqual(("3", "1", "5", "32", "32", "0"), tuple(first[k] for k in (
            "kind", "cau.op", "cau.operand", "cau.size", "bytes", "cau.sequence")))
        self.assertTrue(self.frames(file, "percs.cau.operation == 1 && percs.cau.type == 0"))
        file = self.capture("service", SCENARIOS / "service-port.yaml", "--kind", "management",
                            "--count", 10, "--from", "sn0-d0-h0")
        probes = self.frames(file, "percs.management.directed == 1 && percs.event == 0")
        self.assertEqual(["30", "31", "32"], [f["management.request"] for f in probes[:3]])
        self.assertEqual({"3"}, {f["vc"] for f in self.frames(file, "percs.event == 1")})
        file = self.capture("answers", SCENARIOS / "service-port.yaml", "--kind", "management",
                            "--count", 40, "--to", "sn0-d0-h0")
        answer = self.frames(file, "percs.management.answer == 1 && percs.event == 2")[0]
        self.assertEqual(answer["src_node"], answer["management.node"])

    def test_what_was_lost_is_found_by_a_filter_with_its_virtual_channel(self):
        file = self.capture("lost", *LOST)
        lost = self.frames(file, "percs.drop && percs.vc == 0")
        self.assertGreater(len(lost), 10)
        self.assertEqual({("link_down", "sn0-d1-h0")}, {(f["reason"], f["node"]) for f in lost})
        self.assertEqual([], self.frames(file, "percs.drop && percs.delivered"))

    def test_capinfos_is_content_and_interfaces_are_links(self):
        file = self.capture("links", SCENARIOS / "two-hubs.yaml", "--count", 50)
        said = self.ran("capinfos", file)
        self.assertIn("Strict time order:   True", said)
        self.assertIn("Time ticks per second = 1000000000000", said)
        for name in ("sn0-d0-h0", "sn0-d0-h0:LL0", "sn0-d0-h1:HFI0"):
            self.assertIn(f"Name = {name}\n", said)
        records = self.layers(file, "frame.interface_name == \"sn0-d0-h0:LL0\"")
        self.assertTrue(records)
        for layer in records:  # Wireshark's own clock has nanoseconds
            self.assertEqual(int(layer["percs"]["percs.frame"]["percs.time"]) // 1000,
                             round(float(layer["frame"]["frame.time_epoch"]) * 1e9))

    def test_records_cut_short_are_said_to_be_and_end_no_dissection(self):
        file = self.formats(echo_request(200).ljust(3000, b"\0"))
        for length in (1, 87, 88, 100, 150, 220):
            short = self.folder / "short.pcapng"
            self.ran("editcap", "-s", length, file, short)
            said = self.ran("tshark", "-X", f"lua_script:{DISSECTOR}", "-r", short, "-V")
            self.assertNotIn("Lua Error", said)
            self.assertIn("PERCS fabric", said)


if __name__ == "__main__":
    unittest.main()
