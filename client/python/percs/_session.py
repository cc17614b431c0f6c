"""A stream of operations and events with the percsd of a hub (docs/endpoint.md, "The stream").

A stream that breaks is opened again with the same token; what the other side has not received is
sent again, so nothing is lost or done twice.
"""

from __future__ import annotations

import collections
import dataclasses
import os
import threading
import time
from typing import Any, Callable, Deque, Dict, Iterator, List, Optional, Sequence

import grpc

from percs import _fields, _rpc, errors
from percs.v1 import endpoint_pb2, options_pb2, windows_pb2

Operation = endpoint_pb2.EndpointOperation

_VERSION = 1  # of this protocol: kEndpointVersion of proto/window/endpoint_codec.h
_DIAL_AGAIN_SECONDS = 0.05
_OPERATIONS_AT_ONCE = 256
_BYTES_AT_ONCE = 1 << 20
_BYTES_UNDER_WAY = 32 << 20
_ACKNOWLEDGE_EVERY = 16
_GOODBYE_SECONDS = 2.0
# The same program may be let in if it dials again.
_MAY_COME_BACK = {grpc.StatusCode.CANCELLED, grpc.StatusCode.UNKNOWN, grpc.StatusCode.ABORTED,
                  grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.INTERNAL,
                  grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED}


class WindowError(errors.PercsError):
    """An operation that a hub refused or could not finish; ``status`` is its WindowStatus.

    The names are those of docs/hfi.md: wrong_key, not_registered, send_fifo_full, unreachable, ...
    """

    def __init__(self, operation: str, status: str, why: str) -> None:
        self.operation = operation
        self.status = status
        super().__init__(f"{operation}: {status}: {why}")


@dataclasses.dataclass(frozen=True)
class Completion:
    """The end of an operation."""

    at_ps: int  # virtual
    length: int = 0  # bytes
    peer: int = 0  # number of the hub whose datagram it is
    peer_window: int = 0
    data: bytes = b""  # of a read
    values: Sequence[int] = ()  # of atomics that fetch, in their order: the value before


@dataclasses.dataclass(frozen=True)
class Packet:
    """What arrived in the receive FIFO."""

    at_ps: int
    format: str  # immediate_send, fifo_send, ip_send, rdma_write, rdma_read
    peer: int  # number of the hub that sent it
    peer_window: int
    data: bytes
    offset: int = 0  # of RDMA into the FIFO: where in its operation


@dataclasses.dataclass(frozen=True)
class Notification:
    """An operation of another window with ``notify`` was done in memory of this one."""

    at_ps: int
    operation: str
    peer: int
    peer_window: int
    length: int  # bytes


class Pending:
    """An operation in flight. Dropping it has no effect."""

    def __init__(self, session: "Session", pieces: int) -> None:
        self._session = session
        self._left = pieces
        self._parts: Dict[int, Completion] = {}
        self._error: Optional[errors.PercsError] = None

    @property
    def done(self) -> bool:
        """Whether it has ended, well or not."""
        with self._session.changed:
            return self._left == 0

    def wait(self, seconds: Optional[float] = None) -> Completion:
        """Blocks until it has ended; raises its error, a WindowError if the hub refused it.

        WaitError after ``seconds`` of wall time (default: those of the window); it continues then.
        """
        self._session.wait(lambda: self._left == 0, seconds)
        if self._error:
            raise self._error
        parts = [part for _, part in sorted(self._parts.items())]
        return dataclasses.replace(
            parts[-1], at_ps=max(part.at_ps for part in parts),
            length=sum(part.length for part in parts), data=b"".join(part.data for part in parts),
            values=tuple(value for part in parts for value in part.values))

    def __repr__(self) -> str:
        how = "ended" if self._error is None else f"ended: {self._error}"
        return f"Pending({how if self.done else 'under way'})"

    def cancel(self) -> None:
        """Ends it at once, as cancelled; what was already sent continues in the fabric."""
        self._session.cancel(self)

    # The session's, with its lock held.
    def _finish_piece(self, place: int, part: Optional[Completion],
                     error: Optional[errors.PercsError]) -> None:
        if self._left == 0:
            return
        self._error = self._error or error
        if part:
            self._parts[place] = part
        self._left -= 1

    def _fail(self, error: errors.PercsError) -> None:
        if self._left:
            self._left, self._error = 0, error


@dataclasses.dataclass
class _Asked:
    """An operation that waits here, or is at the hub."""

    message: Operation
    pending: Optional[Pending]
    place: int = 0  # among the pieces of its Pending
    counts: bool = True  # among those under way
    bytes: int = 0  # to write and read
    slots: int = 0  # that it returns


def status_error(operation: str, status: int) -> WindowError:
    """What a status means, in the words of its option in windows.proto."""
    kind = windows_pb2.DESCRIPTOR.enum_types_by_name["WindowStatus"]
    value = kind.values_by_number.get(status)
    why = value.GetOptions().Extensions[options_pb2.meaning] if value else "unknown to this version"
    return WindowError(operation, _fields.choice_name(kind, status),
                       why[len(operation) + 2:] if why.startswith(operation + ": ") else why)


def operation_name(number: int) -> str:
    """fifo_send, rdma_write, ..."""
    return _fields.choice_name(Operation.DESCRIPTOR.enum_types_by_name["Op"], number)


class Session:
    """One program at one window. May be used from any thread."""

    def __init__(self, where: _rpc.Address, hello: endpoint_pb2.EndpointHello, exclusive: bool,
                 receive_slots: int, under_way: int, seconds: float, reattach: float) -> None:
        self.changed = threading.Condition(threading.RLock())
        self.where = where
        self.channel = _rpc.Channel(where, "Endpoint")
        self.attached: Optional[endpoint_pb2.EndpointAttached] = None
        self.ended: Optional[errors.PercsError] = None
        self.now_ps = 0
        self.dials = 0
        self.packets: Deque[Packet] = collections.deque()
        self.notifications: Deque[Notification] = collections.deque()
        self.seconds = seconds
        self._hello = hello
        self._hello.version = _VERSION
        self._hello.token = os.urandom(16)
        self._hello.keep_wall_ms = int(reattach * 1000)
        self._exclusive = exclusive
        self._receive_slots = receive_slots
        self._under_way_max = under_way
        self._reattach = reattach
        self._heard = False
        self._ready = False
        self._closing = self._detaching = self._detach_sent = False
        self._sequence = self._received = self._acknowledged = 0
        self._sent: Deque[endpoint_pb2.FromProgram] = collections.deque()
        self._unsent = 0  # index into them
        self._waiting: Deque[_Asked] = collections.deque()
        self._under_way: Dict[int, _Asked] = {}
        self._last_id = 0
        self._events = 0
        self._waits_after: Optional[int] = None
        self._wants_to_wait = False
        self._space = 0
        self._stream: Any = None
        self._give_up_at: Optional[float] = time.monotonic() + seconds
        self._thread = threading.Thread(target=self._run, daemon=True,
                                        name=f"window of {hello.hub}")
        self._thread.start()

    # --- What the program calls

    def ask(self, operations: Sequence[Operation]) -> Pending:
        """Operations that count as one. They are issued in the order of the calls."""
        pending = Pending(self, len(operations))
        with self.changed:
            if self.ended or self._detaching:
                pending._fail(self.ended or errors.CancelledError("the window is being detached"))
                return pending
            for place, message in enumerate(operations):
                read = message.bytes if message.op == Operation.OP_READ_MEMORY else 0
                self._waiting.append(_Asked(message, pending, place,
                                            message.op != Operation.OP_IP_RECEIVE,
                                            len(message.data) + read))
            self.changed.notify_all()
        return pending

    def wait(self, there: Callable[[], bool], seconds: Optional[float] = None) -> None:
        """Until it is; WaitError after ``seconds``. An exclusive program waits with it."""
        end = time.monotonic() + (self.seconds if seconds is None else seconds)
        with self.changed:
            try:
                while not there():
                    if self._exclusive and self.attached and self._waits_after != self._events:
                        self._wants_to_wait = True
                        self.changed.notify_all()
                    left = end - time.monotonic()
                    if left <= 0:
                        raise errors.WaitError("the deadline passed; the operation continues")
                    self.changed.wait(left)
            finally:
                self._wants_to_wait = False

    def wait_all(self, seconds: Optional[float] = None) -> None:
        """Waits until every operation so far has ended, with or without an error."""
        def there() -> bool:
            return not any(asked.pending for asked in [*self._waiting, *self._under_way.values()])
        self.wait(there, seconds)
        if self.ended:
            raise self.ended

    def take(self, queue: Deque[Any], seconds: Optional[float]) -> Any:
        """The next of a queue; what the window ended with if none will come."""
        self.wait(lambda: bool(queue) or self.ended is not None, seconds)
        with self.changed:
            if not queue:
                assert self.ended
                raise self.ended
            one = queue.popleft()
            if queue is self.packets:
                self._took_packet()
            return one

    def cancel(self, pending: Pending) -> None:
        """What has not left is never done; of the rest the result is not reported."""
        with self.changed:
            self._waiting = collections.deque(a for a in self._waiting if a.pending is not pending)
            for asked in self._under_way.values():
                if asked.pending is pending:
                    asked.pending = None
            pending._fail(errors.CancelledError(
                "cancelled; operations already sent continue in the fabric"))
            self.changed.notify_all()

    def open(self) -> None:
        """Until the window is reserved."""
        try:
            self.wait(lambda: self.attached is not None or self.ended is not None)
        except errors.PercsError:
            self._withdraw()
            raise
        if self.ended:
            raise self.ended

    def detach(self, seconds: Optional[float] = None) -> None:
        """Releases the window; what is under way ends as cancelled."""
        with self.changed:
            if not self.ended and not self._detaching:
                self._detaching = True
                for asked in self._waiting:
                    if asked.pending:
                        asked.pending._fail(errors.CancelledError("the window is being detached"))
                self._waiting.clear()
                self.changed.notify_all()
        self.wait(lambda: self.ended is not None, seconds)

    def close(self) -> None:
        """Ends the stream and its thread."""
        try:
            if self.attached:
                self.detach(_GOODBYE_SECONDS)
        except errors.PercsError:
            pass  # the hub gives the window up by itself
        with self.changed:
            self._closing = True
            self._fail(errors.CancelledError("the window was closed"))
            if self._stream is not None:
                self._stream.cancel()
            self.changed.notify_all()
        self._thread.join(_GOODBYE_SECONDS)
        self.channel.close()

    def _withdraw(self) -> None:
        """The hub has to know that the window is not awaited any more."""
        try:
            self.channel.call("Detach", endpoint_pb2.DetachRequest(token=self._hello.token),
                              endpoint_pb2.DetachReply, 1.0)
        except errors.PercsError:
            pass  # a hub that does not answer gives it up by itself

    # --- The stream

    def _run(self) -> None:
        while not self._closing and not self.ended:
            with self.changed:
                self.dials += 1
                self._ready, self._unsent = False, 0
                dial = self.dials
            self._stream = self.channel.method("Attach")(self._requests(dial))
            error: Any = None
            try:
                for message in self._stream:
                    with self.changed:
                        self._on_message(message)
                        self.changed.notify_all()
            except grpc.RpcError as broken:
                error = broken
            with self.changed:
                self._on_stream_ended(error)
                self.changed.notify_all()
            if not self.ended:
                time.sleep(_DIAL_AGAIN_SECONDS)

    def _on_stream_ended(self, error: Any) -> None:
        self._ready = False
        if self.ended or self._closing:
            return
        code = error.code() if error is not None else grpc.StatusCode.UNAVAILABLE
        limited = code == grpc.StatusCode.RESOURCE_EXHAUSTED and not self._heard
        if code not in _MAY_COME_BACK or limited:
            return self._fail(_rpc.error_of("Endpoint.Attach", self.where, error))
        now = time.monotonic()
        if self._give_up_at is None:
            self._give_up_at = now + self._reattach
        if now >= self._give_up_at:
            self._fail(errors.UnreachableError(
                f"{self._hello.hub}: its percsd at {self.where.address} does not answer"
                f"{': ' + error.details() if error is not None else ''}; if the percsd has exited, "
                "the hub is lost"))

    def _requests(self, dial: int) -> Iterator[endpoint_pb2.FromProgram]:
        """What one stream sends. The first message is the hello."""
        hello = endpoint_pb2.EndpointHello()
        hello.CopyFrom(self._hello)
        hello.received, hello.resume = self._received, self._heard
        yield endpoint_pb2.FromProgram(hello=hello)
        while True:
            with self.changed:
                while True:
                    if self.dials != dial or self._closing or self.ended:
                        return
                    message = self._next() if self._ready else None
                    if message is not None:
                        break
                    self.changed.wait(1.0)
            yield message

    def _may_send(self, asked: _Asked) -> bool:
        if not asked.counts:
            return True
        counted = [a for a in self._under_way.values() if a.counts]
        return len(counted) < self._under_way_max and (
            not counted or sum(a.bytes for a in counted) + asked.bytes <= _BYTES_UNDER_WAY)

    def _build(self) -> Optional[endpoint_pb2.FromProgram]:
        message = endpoint_pb2.FromProgram()
        size = 0
        while (self.attached and self._waiting and self._may_send(self._waiting[0]) and
               len(message.operations) < _OPERATIONS_AT_ONCE and size < _BYTES_AT_ONCE):
            asked = self._waiting.popleft()
            self._last_id += 1
            asked.message.id = self._last_id
            size += len(asked.message.data)
            message.operations.append(asked.message)
            self._under_way[self._last_id] = asked
        if self._wants_to_wait and not (self._waiting and self._may_send(self._waiting[0])):
            self._wants_to_wait = False
            self._waits_after = message.waits_after = self._events
        if self._detaching and not self._detach_sent:
            self._detach_sent = message.detach = True
        if message.operations or message.HasField("waits_after") or message.detach:
            return message
        return None

    def _next(self) -> Optional[endpoint_pb2.FromProgram]:
        if self._unsent == len(self._sent):
            built = self._build()
            if built is not None:
                self._sequence += 1
                built.sequence = self._sequence
                self._sent.append(built)
        message = endpoint_pb2.FromProgram()
        if self._unsent < len(self._sent):
            message.CopyFrom(self._sent[self._unsent])
            self._unsent += 1
        elif self._received - self._acknowledged < _ACKNOWLEDGE_EVERY:
            return None
        self._acknowledged = message.acknowledged = self._received
        return message

    def _on_message(self, message: endpoint_pb2.FromHub) -> None:
        if message.HasField("hello"):
            self._heard = self._ready = True
            self._give_up_at = None
            while self._sent and self._sent[0].sequence <= message.hello.received:
                self._sent.popleft()
            self._unsent = 0
            return
        while self._sent and self._sent[0].sequence <= message.acknowledged:
            self._sent.popleft()
            self._unsent = max(self._unsent - 1, 0)
        if message.sequence == 0 or message.sequence <= self._received:
            return
        if message.sequence != self._received + 1:
            self._stream.cancel()  # dials again, and hears what is missing
            return
        self._received += 1
        self.now_ps = max(self.now_ps, message.issued_at)
        if message.HasField("attached"):
            self.attached = message.attached
            self.now_ps = max(self.now_ps, message.attached.at)
        for refusal in message.refusals:
            self._complete(refusal.id, None, _rpc.error_of_number(refusal.code, refusal.message))
        for event in message.events:
            self._on_event(event)
        self._events = max(self._events, message.events_so_far)
        if message.HasField("ended"):
            code, why = message.ended.code, message.ended.message
            self._fail(errors.CancelledError("the window was detached") if code == 0 else
                       _rpc.error_of_number(code, f"{self._hello.hub}: {why}"))

    def _on_event(self, event: endpoint_pb2.EndpointEvent) -> None:
        self.now_ps = max(self.now_ps, event.at)
        name = operation_name(event.op)
        if event.kind == endpoint_pb2.EndpointEvent.KIND_COMPLETION:
            good = event.status == windows_pb2.WINDOW_STATUS_OK
            self._complete(event.id, Completion(event.at, event.bytes, event.peer,
                                                event.peer_window, event.data,
                                                tuple(event.values)) if good else None,
                           None if good else status_error(name, event.status))
        elif event.kind == endpoint_pb2.EndpointEvent.KIND_RECEIVED:
            self.packets.append(Packet(event.at, name, event.peer, event.peer_window, event.data,
                                       event.offset))
        else:
            self.notifications.append(Notification(event.at, name, event.peer, event.peer_window,
                                                   event.bytes))

    def _took_packet(self) -> None:
        """Slots of the receive FIFO are returned many at a time: each time is an operation."""
        self._space += 1
        if self._space < max(self._receive_slots // 2, 1):
            return
        back = Operation(op=Operation.OP_RETURN_SPACE, count=self._space)
        self._waiting.appendleft(_Asked(back, None, counts=False, slots=self._space))
        self._space = 0
        self.changed.notify_all()

    def _complete(self, id: int, part: Optional[Completion],
                  error: Optional[errors.PercsError]) -> None:
        asked = self._under_way.pop(id, None)
        if asked is None:
            return
        if error:
            self._space += asked.slots  # the next ones are returned with these
        if asked.pending:
            asked.pending._finish_piece(asked.place, part, error)

    def _fail(self, error: errors.PercsError) -> None:
        if self.ended:
            return
        self.ended = error
        asked: List[_Asked] = [*self._under_way.values(), *self._waiting]
        self._under_way.clear()
        self._waiting.clear()
        for one in asked:
            if one.pending:
                one.pending._fail(error)
        self._sent.clear()
        self._unsent = 0
        if self._stream is not None:
            self._stream.cancel()
