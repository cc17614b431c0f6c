"""A window of the Host Fabric Interface of a hub, for a program of your own (docs/endpoint.md).

The program runs in wall time, the hub in virtual time. Operations are sent to the percsd of the hub
and take effect at the beginning of the next window of virtual time. A call returns a
Pending at once, unless its text says that it blocks.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
from types import TracebackType
from typing import Any, Dict, Iterator, Optional, Sequence, Tuple, Type, Union

from percs import _fields, _rpc, errors
from percs._session import (Completion, Notification, Operation, Packet, Pending, Session,
                            WindowError)
from percs.v1 import endpoint_pb2, windows_pb2

__all__ = ["Atomic", "Completion", "Notification", "Packet", "Pending", "Window", "WindowError"]

FIFO_ADDRESS = 1 << 46  # of the FIFOs in the context; a region of the program may not be there
_SLOT_BYTES = 2048
_PIECE_BYTES = 1 << 20  # of what is longer than one operation takes
_REATTACH_MAX_SECONDS = 60.0
Data = Union[bytes, bytearray, memoryview]
_FORMATS = {"immediate": Operation.OP_IMMEDIATE_SEND, "fifo": Operation.OP_FIFO_SEND,
            "ip": Operation.OP_IP_SEND}


def _bytes(data: Data) -> bytes:
    """Bytes as they are sent. FieldError for text and numbers."""
    if isinstance(data, (str, int)):
        example = f"{data!r}.encode()" if isinstance(data, str) else f"({data}).to_bytes(8, 'big')"
        raise errors.FieldError("data", data, f"{data!r} is no bytes", f"write {example}")
    return bytes(memoryview(data))


@dataclasses.dataclass(frozen=True)
class Atomic:
    """An update of an integer in the memory of another hub."""

    address: int  # a multiple of the size
    operand: int = 1
    operation: str = "add"  # add, and, or, xor, compare_swap
    size: int = 8  # bytes: 1, 2, 4 or 8
    fetch: bool = True  # the value before comes back
    compare: int = 0  # compare_swap: the expected value


class Window:
    """A window of a hub; ``Fabric.window`` makes one. A context manager, which detaches at the end.

    ``job``: only windows of one job reach each other's memory. ``window``: its number; None: the
    lowest that is free. ``context``: of its memory; None: the number of the window. ``mode``:
    "shared" (virtual time continues whatever the program does) or "exclusive" (it is held from
    every event that the program receives until the program waits again). ``send_slots`` and
    ``receive_slots``: FIFOs, in slots of 2,048 bytes; 0: none. ``under_way``: operations that the
    hub has at a time. ``seconds``: wall time that calls wait unless they are given another.
    ``reattach``: wall seconds for which a broken stream is opened again, at most 60. ``tls``:
    folder of an identity of the role endpoint or operator.
    """

    def __init__(self, address: str, hub: str = "", *, job: int = 1, window: Optional[int] = None,
                 context: Optional[int] = None, mode: str = "shared", send_slots: int = 64,
                 receive_slots: int = 64, name: str = "program", under_way: int = 128,
                 seconds: float = 30.0, reattach: float = 5.0,
                 tls: Union[None, str, "os.PathLike[str]"] = None) -> None:
        modes = {"shared": endpoint_pb2.ATTACH_MODE_SHARED,
                 "exclusive": endpoint_pb2.ATTACH_MODE_EXCLUSIVE}
        if mode not in modes:
            raise errors.FieldError("mode", mode, f'"{mode}" is not a choice',
                                    "choices: " + ", ".join(modes))
        if not 1 <= job <= 65535:
            raise errors.FieldError("job", job, f"{job} is out of range", "allowed: 1 to 65535")
        if under_way < 1:
            raise errors.FieldError("under_way", under_way, f"{under_way} is out of range",
                                    "allowed: 1 or more")
        if not 0 <= reattach <= _REATTACH_MAX_SECONDS:
            raise errors.FieldError("reattach", reattach, f"{reattach} is out of range",
                                    "allowed: 0 to 60 seconds")
        hello = endpoint_pb2.EndpointHello(hub=hub, job=job, mode=modes[mode], name=name)
        if window is not None:
            hello.window = window
        self._nodes: Dict[str, int] = {}
        self._context = context
        self._hub = hub
        self._session = Session(
            _rpc.Address(address, pathlib.Path(tls) if tls else None, "daemon"), hello,
            mode == "exclusive", receive_slots, under_way, seconds, reattach)
        try:
            self._session.open()
            self._make_fifos(send_slots, receive_slots)
        except BaseException:
            self._session.close()
            raise

    def _make_fifos(self, send: int, receive: int) -> None:
        if send + receive == 0:
            return
        memory = self.register(FIFO_ADDRESS, _SLOT_BYTES * (send + receive))
        configure = self._operation(Operation.OP_CONFIGURE)
        configure.send_fifo.address, configure.send_fifo.slots = FIFO_ADDRESS, send
        configure.receive_fifo.address = FIFO_ADDRESS + _SLOT_BYTES * send
        configure.receive_fifo.slots = receive
        configured = self._session.ask([configure])
        memory.wait()
        configured.wait()

    # --- What it is

    @property
    def node(self) -> int:
        """Number of its hub."""
        assert self._session.attached
        return self._session.attached.node

    @property
    def window(self) -> int:
        """Its number."""
        assert self._session.attached
        return self._session.attached.window

    @property
    def context(self) -> int:
        """The address space of its memory on the hub."""
        return self.window if self._context is None else self._context

    @property
    def now_ps(self) -> int:
        """Virtual time of the last event received."""
        return self._session.now_ps

    @property
    def reconnects(self) -> int:
        """How often the stream was reopened."""
        return self._session.dials - 1

    @property
    def error(self) -> Optional[errors.PercsError]:
        """Why the window was lost; None while the program has it."""
        return self._session.ended

    def find(self, hub: Union[int, str]) -> int:
        """Number of a hub or of a multicast group. NotFoundError suggests similar names."""
        if isinstance(hub, int):
            return hub
        if hub not in self._nodes:
            reply = self._session.channel.call(
                "FindNodes", endpoint_pb2.FindNodesRequest(names=[hub]),
                endpoint_pb2.FindNodesReply, self._session.seconds)
            self._nodes[hub] = reply.nodes[0]
        return self._nodes[hub]

    def detach(self, seconds: Optional[float] = None) -> None:
        """Blocks until the window is released; operations in flight end as cancelled."""
        self._session.detach(seconds)

    def close(self) -> None:
        """Detaches, for which it waits at most two seconds, and ends the connection."""
        self._session.close()

    def __enter__(self) -> "Window":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    # --- Memory. Addresses are of the window's context; the bytes are in the emulated hub.

    def _operation(self, op: "Operation.Op", **fields: Any) -> Operation:
        return Operation(op=op, context=self.context, **fields)

    def register(self, address: int, bytes: int, *, writable: bool = True,
                 device: Optional[int] = None, device_offset: int = 0) -> Pending:
        """Registers memory, or bytes of the device in a PCI Express port of the hub."""
        operation = self._operation(Operation.OP_REGISTER, address=address, bytes=bytes,
                                    read_only=not writable, device_offset=device_offset)
        if device is not None:
            operation.device = device
        return self._session.ask([operation])

    def deregister(self, address: int) -> Pending:
        """Of the region that begins there."""
        return self._session.ask([self._operation(Operation.OP_DEREGISTER, address=address)])

    def write(self, address: int, data: Data) -> Pending:
        """Into registered memory."""
        data = _bytes(data)
        return self._session.ask([
            self._operation(Operation.OP_WRITE_MEMORY, address=address + done,
                            data=data[done:done + _PIECE_BYTES])
            for done in range(0, max(len(data), 1), _PIECE_BYTES)])

    def read(self, address: int, bytes: int) -> Pending:
        """From registered memory: ``read(...).wait().data``."""
        return self._session.ask([
            self._operation(Operation.OP_READ_MEMORY, address=address + done,
                            bytes=min(bytes - done, _PIECE_BYTES))
            for done in range(0, max(bytes, 1), _PIECE_BYTES)])

    # --- Packets: unreliable, as the hardware's

    def send(self, hub: Union[int, str], window: int, data: Data = b"", *, format: str = "fifo",
             segments: Sequence[Tuple[int, int]] = ()) -> Pending:
        """Sends a packet: up to 127 bytes ``immediate``, 2,048 ``fifo`` or ``ip``.

        ``ip`` with ``segments``, (address, bytes) in the window's context, is a datagram of up to
        65,535 bytes that the HFI gathers.
        """
        if format not in _FORMATS:
            raise errors.FieldError("format", format, f'"{format}" is not a choice',
                                    "choices: " + ", ".join(_FORMATS))
        operation = self._operation(_FORMATS[format], node=self.find(hub), peer_window=window,
                                    data=_bytes(data))
        self._add_segments(operation, segments)
        return self._session.ask([operation])

    def _add_segments(self, operation: Operation, segments: Sequence[Tuple[int, int]]) -> None:
        for address, length in segments:
            operation.segments.add(context=self.context, address=address, bytes=length)

    def receive_ip(self, segments: Sequence[Tuple[int, int]]) -> Pending:
        """Ends when a datagram that was gathered has been scattered to these (address, bytes)."""
        operation = self._operation(Operation.OP_IP_RECEIVE)
        self._add_segments(operation, segments)
        return self._session.ask([operation])

    def join(self, group: Union[int, str]) -> Pending:
        """Packets to a multicast group reach this window from now on."""
        return self._session.ask([self._operation(Operation.OP_JOIN, node=self.find(group))])

    def leave(self, group: Union[int, str]) -> Pending:
        """... and no more."""
        return self._session.ask([self._operation(Operation.OP_LEAVE, node=self.find(group))])

    # --- Exactly once, or failed with a reason

    def _rdma(self, op: "Operation.Op", hub: Union[int, str], window: int, there: int, here: int,
              bytes: int, context: Optional[int], **flags: bool) -> Pending:
        return self._session.ask([self._operation(
            op, node=self.find(hub), peer_window=window, peer_address=there, address=here,
            bytes=bytes, peer_context=window if context is None else context, **flags)])

    def rdma_write(self, hub: Union[int, str], window: int, *, there: int, here: int, bytes: int,
                   context: Optional[int] = None, notify: bool = False, to_fifo: bool = False,
                   cached: bool = False) -> Pending:
        """Writes local memory to memory of another hub, in ``context`` (default: the window).

        ``notify``: the remote window is notified when all of it has arrived; ``to_fifo``: into
        the receiver's FIFO; ``cached``: the bytes are in a cache.
        """
        return self._rdma(Operation.OP_RDMA_WRITE, hub, window, there, here, bytes, context,
                          notify=notify, to_fifo=to_fifo, cached=cached)

    def rdma_read(self, hub: Union[int, str], window: int, *, there: int, here: int, bytes: int,
                  context: Optional[int] = None, to_fifo: bool = False) -> Pending:
        """Reads memory of another hub into local memory, or into the own receive FIFO."""
        return self._rdma(Operation.OP_RDMA_READ, hub, window, there, here, bytes, context,
                          to_fifo=to_fifo)

    def atomic(self, hub: Union[int, str], window: int, *updates: Atomic,
               context: Optional[int] = None, notify: bool = False) -> Pending:
        """Up to four updates as one group: all once, in this order, or none.

        ``atomic(...).wait().values`` are the previous values, of those that fetch.
        """
        kinds = _fields.choices_of(windows_pb2.DESCRIPTOR.enum_types_by_name["AtomicOperation"])
        operation = self._operation(Operation.OP_ATOMIC, node=self.find(hub), peer_window=window,
                                    peer_context=window if context is None else context,
                                    notify=notify)
        for update in updates:
            if update.operation not in kinds:
                raise errors.FieldError("operation", update.operation,
                                        f'"{update.operation}" is not a choice',
                                        "choices: " + ", ".join(kinds))
            mask = (1 << 64) - 1  # integers below 0 in two's complement
            kind = windows_pb2.AtomicOperation.Name(kinds[update.operation])
            operation.updates.add(operation=kind, size=update.size, fetch=update.fetch,
                                  address=update.address, operand=update.operand & mask,
                                  compare=update.compare & mask)
        return self._session.ask([operation])

    def fence(self, *, writes: bool = True, reads: bool = True) -> Pending:
        """Ends when earlier operations of these kinds have ended; later operations begin then."""
        return self._session.ask([self._operation(Operation.OP_FENCE, fence_writes=writes,
                                                  fence_reads=reads)])

    # --- What comes

    def receive(self, seconds: Optional[float] = None) -> Packet:
        """The next packet in the receive FIFO. Blocks; WaitError after ``seconds`` of wall time.

        Slots are returned half a FIFO at a time: count on half of them.
        """
        packet: Packet = self._session.take(self._session.packets, seconds)
        return packet

    def packets(self) -> Iterator[Packet]:
        """Every packet, until the window is released."""
        while True:
            try:
                yield self.receive(3600.0)
            except errors.WaitError:
                continue
            except errors.CancelledError:
                return

    def notification(self, seconds: Optional[float] = None) -> Notification:
        """The next notification. Blocks."""
        one: Notification = self._session.take(self._session.notifications, seconds)
        return one

    def wait_all(self, seconds: Optional[float] = None) -> None:
        """Blocks until every operation so far has ended, with or without an error."""
        self._session.wait_all(seconds)

    def __repr__(self) -> str:
        return f"Window({self.window} of {self._hub or f'hub {self.node}'})"
