"""Hostile input on every port of a fabric: it stays up, its memory stays bounded, results stay.

Method: two daemons and a controller over TCP run a scenario while threads throw at each of their
ports what the seed (PERCS_SEED) makes: random bytes, HTTP/2 that goes wrong after a right start,
frames that announce more than they may, connections that say nothing, requests sent byte by byte,
answers that nobody reads. Then the digest is that of one process, the same processes answer, and
none has grown beyond a bound.
"""

import contextlib
import os
import pathlib
import random
import re
import socket
import struct
import threading
import unittest
import urllib.request

from test_cli import CliTest

SEED = int(os.environ.get("PERCS_SEED", "1"))
# Of a daemon of two hubs: some 30 without all this. Sanitizers keep what was freed for a while.
RESIDENT_MAX_MIB = 1280 if os.environ.get("PERCS_SANITIZER") else 160
IDLE_CONNECTIONS = 100
SCENARIO = """\
name: besieged
topology: {supernodes: 1, drawers: 2, hubs: 2}
workload:
  all_to_all: {bytes: 512KiB, reliable: true, payload: verified}
faults:
  - {id: cut, at: 20us, link_down: sn0-d0-h0/sn0-d1-h0}
  - {id: mend, at: 60us, link_up: sn0-d0-h0/sn0-d1-h0}
"""
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS, HEADERS, DATA, PING, WINDOW_UPDATE = 4, 1, 0, 6, 8


def frame(kind, payload, flags=0, stream=0, length=None):
    """A frame of HTTP/2 that may announce another length than it has."""
    size = len(payload) if length is None else length
    return struct.pack(">I", size)[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=1)


def throw(port, *parts):
    """Sends and waits for what comes back, if anything."""
    with contextlib.suppress(OSError), connect(port) as peer:
        for part in parts:
            peer.sendall(part)
        peer.settimeout(0.2)
        peer.recv(65536)


def random_bytes(port, random_):
    throw(port, random_.randbytes(random_.randrange(1, 4096)))


def broken_http2(port, random_):
    throw(port, PREFACE, frame(SETTINGS, b""),
          frame(random_.randrange(256), random_.randbytes(random_.randrange(64)),
                random_.randrange(256), random_.randrange(2**31)))


def oversized_frames(port, random_):
    throw(port, PREFACE, frame(SETTINGS, b""), frame(HEADERS, b"", 4, 1, length=2**24 - 1),
          random_.randbytes(65536))


def oversized_messages(port, random_):
    """A gRPC message that announces 4 GiB to a method that exists."""
    path = b"/percs.v1.Control/Apply"
    literal = lambda name, value: bytes([0, len(name)]) + name + bytes([len(value)]) + value
    headers = b"\x83\x86" + literal(b":path", path) + literal(b":authority", b"x") + literal(
        b"content-type", b"application/grpc") + literal(b"te", b"trailers")
    throw(port, PREFACE, frame(SETTINGS, b""), frame(HEADERS, headers, 4, 1),
          frame(DATA, b"\0\xff\xff\xff\xff" + random_.randbytes(8192), 0, 1))


def floods(port, random_):
    throw(port, PREFACE, frame(SETTINGS, b""),
          *[frame(PING, random_.randbytes(8)) for _ in range(500)])


def requests_for_pages(port, random_):
    path = random_.choice([b"/metrics", b"/discovery", b"/" + b"x" * 5000, b"/../../etc/passwd"])
    throw(port, b"GET " + path + b" HTTP/1.1\r\nHost: x\r\n\r\n" * random_.randrange(1, 20))


ATTACKS = (random_bytes, broken_http2, oversized_frames, oversized_messages, floods,
           requests_for_pages)


def resident_mib(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", text)[1]) / 1024


class HostileTest(CliTest):
    def setUp(self):
        super().setUp()
        self.over = threading.Event()
        self.thrown = 0
        self.open = []
        self.addCleanup(lambda: [peer.close() for peer in self.open])

    def ports(self, up):
        status = self.good_json("status")
        addresses = [up["controller"], up["metrics"]]
        with self.fetch(up["metrics"].replace("/metrics", "/discovery")) as answer:
            addresses += re.findall(r"127\.0\.0\.1:\d+", answer.read().decode())
        addresses += [process["link_address"] for process in status["processes"]]
        return sorted({int(re.search(r"127\.0\.0\.1:(\d+)", a)[1]) for a in addresses})

    def fetch(self, url):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        return opener.open(url, timeout=60)

    def attack(self, port):
        random_ = random.Random(SEED * 65536 + ATTACKS.index(random_bytes))
        while not self.over.is_set():
            random_.choice(ATTACKS)(port, random_)
            self.thrown += 1

    def hold(self, port):
        """Connections that say nothing or half of something and are never read from."""
        for i in range(IDLE_CONNECTIONS):
            with contextlib.suppress(OSError):
                peer = connect(port)
                self.open.append(peer)
                if i % 2:
                    peer.sendall(PREFACE[:random.Random(i).randrange(len(PREFACE))])

    def trickle(self, port):
        with contextlib.suppress(OSError), connect(port) as peer:
            for byte in b"GET /metrics HTTP/1.1\r\nX: " + b"y" * 10000:
                if self.over.wait(0.05):
                    return
                peer.sendall(bytes([byte]))

    def test_a_fabric_under_siege_has_the_result_of_one_process(self):
        print(f"seed {SEED}")
        up = self.good_json("up", "--tcp", "--daemons", 2, "--metrics", "127.0.0.1:0")
        ports = self.ports(up)
        self.assertEqual(6, len(ports), "control, two links, three of metrics")
        for port in ports:
            self.hold(port)
        threads = [threading.Thread(target=work, args=(port,)) for port in ports
                   for work in (self.attack, self.trickle)]
        for thread in threads:
            thread.start()
        try:
            file = self.write("besieged.yaml", SCENARIO)
            local = self.good_json("run", file)
            for _ in range(2):
                live = self.good_json("apply", file, "--wait")
                self.assertEqual(local["digest"], live["digest"])
                self.assertEqual([], live["violations"])
        finally:
            self.over.set()
            for thread in threads:
                thread.join()
        self.assertGreater(self.thrown, 50)
        status = self.good_json("status")
        self.assertTrue(all(p["connected"] for p in status["processes"]), status)
        for process in up["processes"]:
            self.assertLess(resident_mib(process["pid"]), RESIDENT_MAX_MIB, process["role"])
        with self.fetch(up["metrics"]) as answer:
            self.assertIn("percs_windows_per_second", answer.read().decode())


if __name__ == "__main__":
    unittest.main()
