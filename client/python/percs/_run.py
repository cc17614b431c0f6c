"""A run of a scenario on a fabric."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Iterator, List, Optional

from percs import _program, tables
from percs.result import Result
from percs.v1 import control_pb2

if TYPE_CHECKING:
    from percs.fabric import Fabric


@dataclasses.dataclass(frozen=True)
class Progress:
    """How far a run is."""

    virtual_ps: int
    windows: int  # of virtual time
    packets_delivered: int
    unfinished: int  # work left
    wall_seconds: float
    state: str  # running, idle, paused, ...


def progress_of(message: control_pb2.RunProgress) -> Progress:
    """From a message."""
    return Progress(message.virtual_time, message.windows, message.packets_delivered,
                    message.unfinished, message.wall_seconds, tables.state_name(message.state))


class Run:
    """A run of a scenario on a fabric: what ``Fabric.apply`` returns."""

    def __init__(self, fabric: "Fabric", number: int, raw: Optional[Any] = None) -> None:
        self.fabric = fabric
        self.number = number  # from 1
        self.nodes = int(raw["nodes"]) if raw else 0
        self.lookahead_ps = int(raw["lookahead_ps"]) if raw else 0
        self.lookahead_source = str(raw["lookahead_source"]) if raw else ""

    def progress(self, every: float = 0.5) -> Iterator[Progress]:
        """Yields a Progress periodically until the run ends; raises the error of the run."""
        request = control_pb2.WatchRunRequest(run=self.number, wall_interval_seconds=every)
        for event in self.fabric.channel.stream("WatchRun", request, control_pb2.RunEvent):
            if event.HasField("progress"):
                yield progress_of(event.progress)

    def result_arguments(self, wait: bool) -> List[str]:
        """Of percsctl."""
        return ["result", "--run", str(self.number), *_program.options(wait=wait),
                *self.fabric.arguments()]

    def result(self, wait: bool = True) -> Result:
        """The report; with ``wait`` when the run has ended, else StateError unless it has.

        DeadlockError, ViolationError (with the report), or the error that the run ended with.
        """
        return Result(_program.run_json(*self.result_arguments(wait)))

    def __repr__(self) -> str:
        return f"Run({self.number} of {self.fabric!r})"
