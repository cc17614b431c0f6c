"""Windows of hubs from Python: messages, RDMA, atomics, errors, broken streams."""

import asyncio
import threading

from fabric import wait_for
from python_package import PackageTest, percs
from unix_proxy import UnixProxy

MACHINE = """
name: windows
machine: p7ih
topology: {supernodes: 1, drawers: 2, hubs: 2}
"""
NEAR, FAR = "sn0-d0-h0", "sn0-d1-h0"
PLACE = 1 << 24


class WindowTest(PackageTest):
    def setUp(self):
        self.fabric = percs.Fabric.local(daemons=2)
        self.addCleanup(self.fabric.close)

    def attach(self, *hubs, **options):
        """A window 0 of each of the hubs, in a run that begins when all are there."""
        self.fabric.apply(percs.Scenario.from_text(MACHINE), wait_endpoints=len(hubs))
        made, threads = {}, []
        for hub in hubs:
            def one(hub=hub):
                made[hub] = self.fabric.window(hub, window=0, seconds=60.0, **options)
            threads.append(threading.Thread(target=one))
            threads[-1].start()
        for thread in threads:
            thread.join()
        for window in made.values():
            self.addCleanup(window.close)
        return [made[hub] for hub in hubs]

    def test_messages_arrive_in_both_directions(self):
        near, far = self.attach(NEAR, FAR)
        sent = near.send(FAR, 0, b"there").wait()
        packet = far.receive()
        self.assertEqual((b"there", near.node, "fifo_send"),
                         (packet.data, packet.peer, packet.format))
        self.assertGreater(packet.at_ps, 0)
        self.assertGreater(sent.at_ps, 0)
        far.send(packet.peer, packet.peer_window, b"back", format="immediate").wait()
        self.assertEqual(b"back", near.receive().data)
        for first in range(0, 200, 25):  # more than the FIFOs have slots
            for number in range(first, first + 25):
                near.send(FAR, 0, b"%d" % number)
            self.assertEqual([b"%d" % n for n in range(first, first + 25)],
                             [far.receive().data for _ in range(25)])
        near.wait_all()

    def test_data_of_any_kind_of_bytes_is_sent_and_text_is_refused(self):
        near, far = self.attach(NEAR, FAR)
        self.assertEqual(f"Window(0 of {FAR})", repr(far))
        for data in (bytearray(b"array"), memoryview(b"view")):
            near.send(FAR, 0, data).wait()
            self.assertEqual(bytes(data), far.receive().data)
        near.register(PLACE, 4096).wait()
        written = near.write(PLACE, bytearray(b"memory"))
        written.wait()
        self.assertEqual("Pending(ended)", repr(written))
        self.assertEqual(b"memory", near.read(PLACE, 6).wait().data)
        for call in (lambda: near.send(FAR, 0, "text"), lambda: near.write(PLACE, "text")):
            with self.assertRaisesRegex(percs.FieldError, r"write 'text'.encode\(\)"):
                call()
        with self.assertRaisesRegex(percs.FieldError, "5 is no bytes"):  # not five zeros
            near.send(FAR, 0, 5)

    def test_memory_of_other_hubs_is_read_written_and_updated(self):
        near, far = self.attach(NEAR, FAR)
        size = 3 << 20  # more than one operation takes
        data = bytes(range(256)) * (size // 256)
        for window in (near, far):
            window.register(PLACE, 2 * size).wait()
        near.write(PLACE, data).wait()
        near.rdma_write(FAR, 0, there=PLACE, here=PLACE, bytes=size, notify=True).wait()
        self.assertEqual(size, far.notification().length)
        self.assertEqual(data, far.read(PLACE, size).wait().data)
        near.rdma_read(FAR, 0, there=PLACE, here=PLACE + size, bytes=256).wait()
        self.assertEqual(data[:256], near.read(PLACE + size, 256).wait().data)
        far.write(PLACE, (10).to_bytes(8, "little")).wait()
        values = near.atomic(FAR, 0, percs.Atomic(PLACE, 5), percs.Atomic(PLACE, -3),
                             percs.Atomic(PLACE, 99, "compare_swap", compare=12)).wait().values
        self.assertEqual((10, 15, 12), tuple(values))
        near.fence().wait()
        self.assertEqual(99, int.from_bytes(far.read(PLACE, 8).wait().data, "little"))
        near.deregister(PLACE).wait()

    def test_datagrams_are_gathered_and_scattered(self):
        near, far = self.attach(NEAR, FAR)
        for window in (near, far):
            window.register(PLACE, 1 << 16).wait()
        near.write(PLACE, bytes(range(250)) * 20).wait()
        arrives = far.receive_ip([(PLACE, 1000), (PLACE + 8000, 9000)])
        near.send(FAR, 0, format="ip", segments=[(PLACE, 3000), (PLACE + 4000, 1000)]).wait()
        self.assertEqual(4000, arrives.wait().length)
        self.assertEqual((bytes(range(250)) * 20)[:1000], far.read(PLACE, 1000).wait().data)

    def test_a_hub_says_what_is_wrong_with_an_operation(self):
        near, far = self.attach(NEAR, FAR)
        far.register(PLACE, 64).wait()
        for status, ask in (
                ("too_large", lambda: near.send(FAR, 0, b"x" * 3000)),
                ("too_large", lambda: near.send(FAR, 0, b"x" * 128, format="immediate")),
                ("empty", lambda: near.atomic(FAR, 0)),
                ("not_registered", lambda: near.read(5, 8)),
                ("unaligned", lambda: near.atomic(FAR, 0, percs.Atomic(PLACE + 1))),
                ("bad_size", lambda: near.atomic(FAR, 0, *[percs.Atomic(PLACE)] * 5)),
                ("overlap", lambda: far.register(PLACE, 64)),
                ("remote_window_closed",
                 lambda: near.atomic(FAR, 7, percs.Atomic(PLACE), context=0))):
            with self.subTest(status=status):
                with self.assertRaises(percs.WindowError) as caught:
                    ask().wait()
                self.assertEqual(status, caught.exception.status, caught.exception)
        with self.assertRaises(percs.NotFoundError):
            near.send("sn0-d0-h9", 0, b"x")
        with self.assertRaises(percs.ExistsError):
            self.fabric.window(NEAR, window=0)
        with self.assertRaises(percs.NotFoundError):
            self.fabric.window("sn7")
        with self.assertRaises(percs.WaitError):
            far.receive(0.05)
        for options in ({"mode": "none"}, {"job": 0}, {"reattach": 61}, {"under_way": 0}):
            with self.assertRaises(percs.FieldError):
                self.fabric.window(NEAR, **options)
        cancelled = far.receive_ip([(PLACE, 64)])
        cancelled.cancel()
        with self.assertRaises(percs.CancelledError):
            cancelled.wait()

    def test_what_ends_a_window_ends_what_is_under_way(self):
        near, far = self.attach(NEAR, FAR)
        waits = far.receive_ip([(PLACE, 64)])
        far.detach()
        for call in (waits.wait, far.receive, lambda: far.read(PLACE, 8).wait()):
            with self.assertRaises(percs.CancelledError):
                call()
        self.assertEqual([], list(far.packets()))
        near.close()
        self.assertEqual("windows", self.fabric.result(wait=True).scenario)

    def test_exclusive_programs_have_one_result(self):
        def play():
            near, far = self.attach(NEAR, FAR, mode="exclusive")

            def answer():
                for packet in far.packets():
                    far.send(packet.peer, packet.peer_window, packet.data).wait()
            echo = threading.Thread(target=answer)
            echo.start()
            times = []
            for number in range(10):
                near.send(FAR, 0, b"%d" % number).wait()
                times.append(near.receive().at_ps)
            near.close()  # in this order: between the two virtual time goes on
            far.detach()
            echo.join()
            far.close()
            return times, self.fabric.result(wait=True).digest
        first = play()
        self.assertEqual(first, play())

    def test_a_broken_stream_is_opened_again_and_nothing_is_lost(self):
        near, far = self.attach(NEAR, FAR)
        near.close()
        address = self.fabric.status().processes.loc["d0", "address"]
        proxy = UnixProxy(self.folder / "proxy.sock", address.removeprefix("unix:"))
        near = percs.Window(f"unix:{self.folder}/proxy.sock", NEAR, reattach=60.0)
        self.addCleanup(proxy.close)
        self.addCleanup(near.close)
        for number in range(30):
            near.send(FAR, 0, b"%d" % number)
            if number % 10 == 5:
                proxy.break_all()
        self.assertEqual([b"%d" % n for n in range(30)], [far.receive().data for _ in range(30)])
        wait_for(lambda: near.reconnects > 0, "a stream that was opened again")
        near.wait_all()

    def test_a_daemon_that_ends_takes_the_window_with_it(self):
        near, far = self.attach(NEAR, FAR, reattach=0.2)
        self.fabric.process("d1").kill()
        with self.assertRaises(percs.UnreachableError):
            far.receive()
        self.assertIsInstance(far.error, percs.UnreachableError)

    def test_packets_come_with_asyncio(self):
        near, far = self.attach(NEAR, FAR)

        async def main():
            await asyncio.gather(*[percs.aio.wait(near.send(FAR, 0, b"%d" % n)) for n in range(5)])
            data = []
            async for packet in percs.aio.packets(far):
                data.append(packet.data)
                if len(data) == 5:
                    break
            self.assertEqual([b"%d" % n for n in range(5)], data)
        asyncio.run(main())
