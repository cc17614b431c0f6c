"""Clients of a running fabric whose cost tests/bench/headline measures: who scrapes its metrics,
who has its page open, and who attacks the page."""

import collections
import contextlib
import itertools
import json
import re
import socket
import threading
import time
import urllib.parse
import urllib.request


class Failure(Exception):
    pass


class Client:
    """Does `work` in a thread until `over`, or until it has a `failure`."""

    def __enter__(self):
        self.over, self.failure = threading.Event(), None
        self.thread = threading.Thread(target=self.work)
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.over.set()
        self.thread.join()
        if self.failure:
            raise self.failure


class Scraper(Client):
    """Asks every process for its metrics each second, over connections that stay open, at times
    spread over the second: as Prometheus does, but with next to no work of its own."""

    def __init__(self, metrics):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(metrics.replace("/metrics", "/discovery"), timeout=10) as answer:
            self.targets = [target["targets"][0] for target in json.load(answer)]
        self.pages, self.bytes, self.slowest = 0, 0, 0

    @staticmethod
    def get(connection):
        connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        answer, end = b"", None
        while end is None or len(answer) < end:
            part = connection.recv(1 << 18)
            if not part:
                raise Failure(f"half a page of metrics: {answer[:100]}")
            answer += part
            head = re.match(rb"HTTP/1\.1 200 (?:.*\r\n)+?\r\n", answer) if end is None else None
            if head:
                length = re.search(rb"(?i)\ncontent-length: (\d+)", head[0])
                end = head.end() + int(length[1])
        return len(answer)

    def work(self):
        with contextlib.ExitStack() as stack:
            connections = []
            for target in self.targets:
                host, port = target.rsplit(":", 1)
                connections.append(stack.enter_context(
                    socket.create_connection((host, int(port)), timeout=10)))
            begun = time.monotonic()
            try:
                for i in itertools.count():
                    due = begun + i / len(connections)
                    if self.over.wait(max(0, due - time.monotonic())):
                        return
                    start = time.monotonic()
                    self.bytes += self.get(connections[i % len(connections)])
                    self.pages += 1
                    self.slowest = max(self.slowest, time.monotonic() - start)
            except (OSError, Failure) as failure:
                self.failure = Failure(f"scraping: {failure}")


class Viewer(Client):
    """Reads the feed of the page, as a browser that shows it, without drawing anything."""

    def __init__(self, link):
        self.at = urllib.parse.urlsplit(link)
        self.messages, self.bytes = 0, 0

    def __enter__(self):
        self.socket = socket.create_connection((self.at.hostname, self.at.port), timeout=10)
        self.socket.sendall(f"GET /api/events HTTP/1.1\r\nHost: {self.at.netloc}\r\n"
                            f"X-Percs-Token: {self.at.fragment}\r\n\r\n".encode())
        return super().__enter__()

    def __exit__(self, *error):
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        try:
            super().__exit__(*error)
        finally:
            self.socket.close()

    def work(self):
        head = b""
        try:
            while part := self.socket.recv(1 << 18):
                if len(head) < 12:
                    head += part[:12]
                    if not b"HTTP/1.1 200".startswith(head):
                        self.failure = Failure(f"the feed of the page: {head}")
                self.bytes += len(part)
                self.messages += part.count(b"event: ")
        except OSError as error:
            self.failure = Failure(f"the feed of the page: {error}")


class Attacker(Client):
    """Holds connections that ask for the feed of the page and never read it, opens others in their
    place, and sends requests that are refused or malformed, so many in a second."""

    SLOW, PER_SECOND = 200, 100
    BODY = (b"POST /api/Status HTTP/1.1\r\nHost: %s\r\nX-Percs-Token: %s\r\n"
            b"Content-Length: %d\r\n\r\n")

    def __init__(self, link):
        at = urllib.parse.urlsplit(link)
        self.place, host, token = (at.hostname, at.port), at.netloc.encode(), at.fragment.encode()
        self.feed = (b"GET /api/events HTTP/1.1\r\nHost: %s\r\nX-Percs-Token: %s\r\n\r\n"
                     % (host, token))
        self.requests = [
            self.feed,
            b"GET /../../etc/passwd HTTP/1.1\r\nHost: %s\r\n\r\n" % host,
            b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 20_000 + b"\r\n",
            self.BODY % (host, token, 1 << 30) + b" " * 100_000,
            self.BODY % (host, token, 5000) + b"[" * 5000,
            b"GET /api/Status HTTP/1.1\r\nHost: evil.example\r\n\r\n",
            b"\0" * 4096 + b"\r\n\r\n",
        ]
        self.answers = collections.Counter()

    def ask(self, text):
        one = socket.create_connection(self.place, timeout=10)
        with contextlib.suppress(OSError):  # it may be closed in the middle of it
            one.sendall(text)
        return one

    def work(self):
        held = []
        for _ in range(self.SLOW):
            with contextlib.suppress(OSError):
                held.append(self.ask(self.feed))
        begun = time.monotonic()
        for i in itertools.count():
            if self.over.wait(max(0, begun + i / self.PER_SECOND - time.monotonic())):
                break
            with contextlib.suppress(OSError):
                if i % 4 == 0:
                    held.append(self.ask(self.feed))
                    continue
                with self.ask(self.requests[i % len(self.requests)]) as one:
                    answer = one.recv(12).split()
                    self.answers[answer[1].decode() if len(answer) > 1 else "closed"] += 1
            for one in held[:-self.SLOW]:
                one.close()
            held = held[-self.SLOW:]
        for one in held:
            one.close()
