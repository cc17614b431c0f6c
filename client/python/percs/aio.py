"""The same for asyncio: what takes long or streams, without blocking the event loop.

For example::

    async for event in percs.aio.events(fabric):
        ...
    result = await percs.aio.run(scenario)
"""

from __future__ import annotations

import asyncio
import os
from typing import AsyncIterator, Callable, Optional, Type, TypeVar, Union

import grpc
from google.protobuf.message import Message

from percs import _program, _rpc, errors, measure
from percs.fabric import Event, Fabric, events_of
from percs.result import Result
from percs._run import Progress, Run, progress_of
from percs.scenario import Scenario
from percs.v1 import control_pb2
from percs.window import Completion, Packet, Pending, Window

Reply = TypeVar("Reply", bound=Message)
Taken = TypeVar("Taken")
_LOOK_SECONDS = 3600.0


async def run(scenario: Union[Scenario, str, "os.PathLike[str]"], *, threads: int = 1,
              events: bool = False) -> Result:
    """``percs.run``. Cancelling the task ends the run."""
    return Result(await _program.run_json_async(
        *measure.run_arguments(scenario, threads, events=events)))


async def result(run: Run) -> Result:
    """``Run.result``, when the run has ended."""
    return Result(await _program.run_json_async(*run.result_arguments(True)))


async def _stream(fabric: Fabric, name: str, request: Message,
                  kind: Type[Reply]) -> AsyncIterator[Reply]:
    where = fabric.channel.where
    async with _rpc.async_channel(where) as channel:
        try:
            async for message in _rpc.bind(channel, "Control", name)(request):
                assert isinstance(message, kind)
                yield message
        except grpc.RpcError as error:
            raise _rpc.error_of(f"Control.{name}", where, error) from None


async def events(fabric: Fabric, *, after: int = 0) -> AsyncIterator[Event]:
    """``Fabric.events(follow=True)``: those that are kept and those to come."""
    request = control_pb2.WatchEventsRequest(after=after, follow=True)
    async for batch in _stream(fabric, "WatchEvents", request, control_pb2.EventBatch):
        for event in events_of(batch):
            yield event


async def progress(run: Run, every: float = 0.5) -> AsyncIterator[Progress]:
    """``Run.progress``: until the run ends."""
    request = control_pb2.WatchRunRequest(run=run.number, wall_interval_seconds=every)
    async for event in _stream(run.fabric, "WatchRun", request, control_pb2.RunEvent):
        if event.HasField("progress"):
            yield progress_of(event.progress)


async def _in_thread(call: Callable[[], Taken]) -> Taken:
    return await asyncio.get_running_loop().run_in_executor(None, call)


async def wait(pending: Pending, seconds: Optional[float] = None) -> Completion:
    """``Pending.wait``."""
    return await _in_thread(lambda: pending.wait(seconds))


async def receive(window: Window, seconds: Optional[float] = None) -> Packet:
    """``Window.receive``."""
    return await _in_thread(lambda: window.receive(seconds))


async def packets(window: Window) -> AsyncIterator[Packet]:
    """``Window.packets``: every packet, until the window is released."""
    while True:
        try:
            yield await receive(window, _LOOK_SECONDS)
        except errors.WaitError:
            continue
        except errors.CancelledError:
            return

