"""Fabrics of daemons: started here, or running elsewhere."""

from __future__ import annotations

import dataclasses
import itertools
import os
import pathlib
import time
from types import TracebackType
from typing import (Any, Dict, Iterator, List, Literal, NamedTuple, Optional, Sequence, Type, Union,
                    overload)

import pandas as pd

from percs import _fields, _program, _rpc, errors, tables
from percs._fields import Time
from percs._injection import Injections
from percs._machine import Machine
from percs.local import Process
from percs.result import Result
from percs._run import Run
from percs._shown import Shown
from percs.scenario import Scenario
from percs.v1 import control_pb2, options_pb2

_numbers = itertools.count(1)
_LOOK_EVERY_SECONDS = 0.005


class Event(NamedTuple):
    """Something that happened to a fabric: a fault, an alert, a reroute, a tree.

    ``kind`` is ``gap`` where ``lost`` events are kept no longer; then it has no other content.
    """

    run: int
    sequence: int  # from 1 in every run
    at_ps: int  # virtual
    kind: str
    subject: str  # fault, link, hub, epoch or tree
    text: str
    lost: int = 0


def events_of(batch: control_pb2.EventBatch) -> Iterator[Event]:
    """From a message."""
    if batch.lost:
        yield Event(batch.run, 0, 0, "gap", "", f"{batch.lost} earlier events are no longer kept",
                    batch.lost)
    for e in batch.events:
        yield Event(batch.run, e.sequence, e.at, e.kind, e.subject, e.text)


@dataclasses.dataclass(frozen=True, repr=False)
class Status(Shown):
    """What a fabric is doing."""

    state: str  # joining, empty, configuring, running, idle, finished, failed, paused
    daemons_expected: int
    processes: pd.DataFrame  # of the daemons
    error: str  # why virtual time is held, or the last run failed; "": nothing is wrong
    waits_for: str  # the missing daemon
    scenario: str  # "": none
    run: int
    nodes: int
    virtual_ps: int
    windows: int
    windows_per_second: float  # wall
    lookahead_ps: int
    epoch: int  # of the route tables
    packets_delivered: int
    unfinished: int  # work left
    wall_seconds: float
    programs: int  # attached to windows
    programs_owing: int  # that virtual time waits for
    programs_awaited: int  # that have to attach before it starts
    faults_active: int
    software: str
    model: int

    def _lines(self) -> List[List[str]]:
        connected = int(self.processes["connected"].sum())
        lines = [["state", self.state],
                 ["daemons", f"{connected} of {self.daemons_expected} connected"]]
        if self.scenario:
            lines += [["scenario", f"{self.scenario} (run {self.run}, {self.nodes} hubs)"],
                      ["virtual time", _fields.print_time(self.virtual_ps)],
                      ["packets", f"{self.packets_delivered:,} delivered"],
                      ["faults active", str(self.faults_active)]]
        return lines + [[name, value] for name, value in (
            ("error", self.error), ("waits for", self.waits_for)) if value]


@dataclasses.dataclass(frozen=True, repr=False)
class Health(Shown):
    """The problems of a fabric, at one virtual time."""

    virtual_ps: int
    healthy: bool  # nothing below is wrong
    epoch: int
    links_down: List[str]
    links_short_of_lanes: List[str]
    hubs_cut_off: List[str]
    unreachable_pairs: int
    trees_not_ready: List[str]
    faults: pd.DataFrame
    reroutes: pd.DataFrame  # the last 16
    reroutes_count: int
    packets_dropped: Dict[str, int]  # by reason
    replays: int  # of flits
    packets_resent: int

    def _lines(self) -> List[List[str]]:
        dropped = ", ".join(f"{count:,} {reason}" for reason, count in
                            self.packets_dropped.items())
        lines = [["health", "healthy" if self.healthy else "degraded"],
                 ["virtual time", _fields.print_time(self.virtual_ps)],
                 ["route tables", f"epoch {self.epoch}"], ["packets dropped", dropped or "none"]]
        return lines + [[name, ", ".join(value)] for name, value in (
            ("links down", self.links_down), ("links short of lanes", self.links_short_of_lanes),
            ("hubs cut off", self.hubs_cut_off), ("trees not ready", self.trees_not_ready),
            ("pairs unreachable", [str(self.unreachable_pairs)] * (self.unreachable_pairs > 0)),
            ("faults", [str(name) for name in self.faults.index])) if value]


class Fabric(Injections, Machine):
    """A controller and its daemons. ``percs.connect`` and ``Fabric.local`` make one.

    A context manager: one that was started here is shut down at the end, another one is left alone.
    All methods may be called from any thread. Every call raises UnreachableError if the controller
    does not answer, and RefusedError if it does not accept the certificate.
    """

    def __init__(self, address: str, tls: Union[None, str, "os.PathLike[str]"] = None, *,
                 name: str = "", owned: bool = False) -> None:
        super().__init__(address, pathlib.Path(tls) if tls else None, name)
        self._owned = owned

    # --- Beginning and end

    @classmethod
    def local(cls, daemons: Optional[int] = None, *, name: Optional[str] = None,
              file: Union[None, str, "os.PathLike[str]"] = None, tls: bool = False,
              tcp: bool = False, port: Optional[int] = None, metrics: Optional[str] = None,
              page: Optional[str] = None, timeout: Union[str, float] = "60s",
              loss_deadline: Union[None, str, float] = None) -> "Fabric":
        """Starts a controller and daemons on this machine, and returns when all have joined.

        ``daemons``: how many; default 4, or one per hub and blade of ``file``. ``name``: for
        ``percsctl --name``; default: one that no other process uses. ``tls``: mutual TLS with new
        identities. ``tcp`` or ``port``: loopback TCP instead of Unix sockets. ``metrics``:
        HOST:PORT for Prometheus. ``page``: HOST:PORT of the page for browsers, or ``off``.
        ``timeout``: wall time. ``loss_deadline``: wall time of silence after which a daemon is
        declared lost during a run.
        """
        chosen = name or f"py-{os.getpid()}-{next(_numbers)}"
        if daemons is None and file is None:
            daemons = 4
        deadline = (None if loss_deadline is None
                    else f"wall:{_fields.wall_ms('loss_deadline', loss_deadline)}ms")
        record = _program.run_json(
            "up", *([file] if file else []),
            *_program.options(name=chosen, daemons=daemons, tls=tls, tcp=tcp, port=port,
                              metrics=metrics, page=page, loss_deadline=deadline,
                              timeout=f"wall:{_fields.wall_ms('', timeout)}ms"))
        return cls(record["controller"], record["tls"] or None, name=chosen, owned=True)

    @classmethod
    def named(cls, name: str = "default") -> "Fabric":
        """A local fabric, or one that a context has (``percs.contexts()``), by its name."""
        from percs.local import record_of
        record = record_of(name)
        return cls(record["controller"], record["tls"] or None,
                   name="" if record["transport"] == "remote" else name)

    def close(self) -> None:
        """Shuts it down if it was started here; else only the connection ends."""
        if self._owned:
            self._owned = False
            self.down()
        else:
            self.channel.close()

    def down(self, grace: Union[str, float] = "10s") -> None:
        """Shuts it down: of a local fabric all processes end, elsewhere controller and daemons.

        ``grace``: wall time that processes get before they are killed.
        """
        where = ["--name", self.name] if self.name else self.arguments()
        self.channel.close()
        _program.run_json("down", *where, "--grace", f"wall:{_fields.wall_ms('grace', grace)}ms")

    def __enter__(self) -> "Fabric":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    # --- Runs

    def apply_arguments(self, scenario: Union[Scenario, str, "os.PathLike[str]"],
                        **options: Any) -> List[str]:
        """Of percsctl."""
        chosen = scenario if isinstance(scenario, Scenario) else Scenario(scenario)
        placement: Optional[Sequence[int]] = options.pop("placement")
        return ["apply", str(chosen.path), *chosen.arguments(), *_program.options(**options),
                *(["--placement", ",".join(map(str, placement))] if placement else []),
                *self.arguments()]

    def apply(self, scenario: Union[Scenario, str, "os.PathLike[str]"], *, hold: bool = False,
              pace: Optional[str] = None, placement: Optional[Sequence[int]] = None,
              wait_endpoints: Optional[int] = None, timeout: Union[str, float] = "120s") -> Run:
        """Builds the machine of a scenario on the daemons and starts virtual time.

        ``hold``: the run stays when it has no work left, until ``stop``. ``pace``: virtual time per
        wall second, like ``"10us/s"``, or ``"max"``. ``placement``: hubs per daemon.
        ``wait_endpoints``: virtual time starts when this many programs are attached to windows.
        ``timeout``: wall time for building.
        """
        raw = _program.run_json(*self.apply_arguments(
            scenario, hold=hold, pace=pace, placement=placement, wait_endpoints=wait_endpoints,
            timeout=f"wall:{_fields.wall_ms('timeout', timeout)}ms"))
        return Run(self, int(raw["run"]), raw)

    @property
    def run(self) -> Run:
        """The current run, or the last one. StateError if there was none."""
        number = self.status().run
        if number == 0:
            raise errors.StateError("no scenario is applied; `apply` starts one")
        return Run(self, number)

    def result(self, run: int = 0, wait: bool = False) -> Result:
        """The report of a run; 0: the last one that ended. The last 16 are kept."""
        return Run(self, run).result(wait)

    def stop(self, wait: bool = True) -> int:
        """Ends workloads that run until stopped, drains the fabric, ends a held run.

        Returns the virtual time in ps at which it takes effect; with ``wait`` when the run is over.
        """
        at = self.call("Stop", control_pb2.StopRequest(), control_pb2.StopReply).at
        if wait:
            for _ in Run(self, 0).progress():
                pass
        return at

    def reset(self) -> None:
        """Drops the scenario; a run that has not ended is cancelled."""
        self.call("Reset", control_pb2.ResetRequest(), control_pb2.ResetReply)

    def command(self, name: str, /, **fields: _fields.Value) -> int:
        """A command of ``percsctl fabric``, like ``"reset-arbiters"``; its fields as options there.

        Returns the virtual time in ps at which it takes effect. ``Fabric.commands`` lists them.
        """
        if name not in self.commands():
            raise errors.FieldError("name", name, f'"{name}" is not a command of `percsctl fabric`'
                                    f"{_fields.nearest(name, list(self.commands()))}",
                                    "commands: " + ", ".join(self.commands()))
        method = _rpc.commands()[f"fabric {name}"]
        request = method.input_type._concrete_class()
        unknown = _fields.set_fields(request, dict(fields))
        if unknown:
            raise errors.FieldError(unknown[0], name, f'{name} has no field "{unknown[0]}"',
                                    "fields: " + (", ".join(request.DESCRIPTOR.fields_by_name) or
                                                  "none"))
        at: int = self.call(method.name, request, method.output_type._concrete_class).at
        return at

    @staticmethod
    def commands() -> Dict[str, str]:
        """What ``command`` can do, and what each is for."""
        return {words.split()[1]: method.GetOptions().Extensions[options_pb2.command].summary
                for words, method in _rpc.commands().items() if words.startswith("fabric ")}

    def repeat(self) -> int:
        """Runs the workload again in a held run that is idle; returns the virtual time in ps."""
        return self.command("repeat")

    def reset_arbiters(self) -> int:
        """Resets the round-robin arbiters of all hubs; returns the virtual time in ps."""
        return self.command("reset-arbiters")

    # --- Virtual time

    def pause(self) -> int:
        """Pauses virtual time; returns where, in ps. Commands are still accepted."""
        return self.call("Pause", control_pb2.PauseRequest(), control_pb2.PauseReply).at

    def resume(self) -> int:
        """Lets virtual time continue; returns from where, in ps."""
        return self.call("Resume", control_pb2.ResumeRequest(), control_pb2.PauseReply).at

    def pace(self, pace: Optional[str]) -> int:
        """Sets how much virtual time may pass per wall second, like ``"20us/s"``; None: no limit.

        Returns the virtual time from which on it holds, in ps.
        """
        request = control_pb2.SetPaceRequest(pace=0 if pace is None else _fields.quantity(
            "pace", pace, _fields.Rules.PACE))
        return self.call("SetPace", request, control_pb2.PauseReply).at

    def step(self, by: Time, wait: bool = True, seconds: Optional[float] = None) -> int:
        """Advances virtual time by ``"50us"`` or a number of ps, then pauses; returns where, in ps.

        ``wait``: until it is there, for at most ``seconds`` of wall time (WaitError).
        """
        request = control_pb2.StepTimeRequest(by=_fields.time_ps("by", by))
        at = self.call("StepTime", request, control_pb2.PauseReply).at
        if wait:  # paused there, and not about to be; beyond it another client resumed it
            self._await_time(at + 1, seconds)
        return at

    def wait_until(self, at: Time, seconds: Optional[float] = None) -> None:
        """Returns when virtual time is at least ``at`` or is paused, or the run is over.

        WaitError after ``seconds`` of wall time.
        """
        self._await_time(_fields.time_ps("at", at), seconds)

    def _await_time(self, until: int, seconds: Optional[float]) -> None:
        end = None if seconds is None else time.monotonic() + seconds
        while True:
            reply = self.call("Status", control_pb2.StatusRequest(), control_pb2.StatusReply)
            state = tables.state_name(reply.state)
            # Paused, it may be reported as the time of the last event before.
            if reply.virtual_time >= until or state not in ("running", "configuring"):
                return
            if end is not None and time.monotonic() > end:
                raise errors.WaitError(
                    f"virtual time is {_fields.print_time(reply.virtual_time)} after {seconds:g} s "
                    f"of wall time, and {_fields.print_time(until)} was awaited ({state})")
            time.sleep(_LOOK_EVERY_SECONDS)

    # --- What is and what happened

    def status(self) -> Status:
        """What it is doing."""
        s = self.call("Status", control_pb2.StatusRequest(), control_pb2.StatusReply)
        return Status(tables.state_name(s.state), s.daemons_expected, tables.processes_frame(s),
                      s.error, s.waits_for, s.scenario, s.run, s.nodes, s.virtual_time, s.windows,
                      s.windows_per_second, s.lookahead, s.epoch, s.packets_delivered, s.unfinished,
                      s.wall_seconds, s.programs, s.programs_owing, s.programs_awaited,
                      s.faults_active, s.versions.software, s.versions.model)

    def health(self) -> Health:
        """What is not as it should be."""
        h = self.call("GetHealth", control_pb2.GetHealthRequest(), control_pb2.HealthReply)
        return Health(h.virtual_time, h.healthy, h.epoch, list(h.links_down),
                      list(h.links_short_of_lanes), list(h.hubs_cut_off), h.unreachable_pairs,
                      list(h.trees_not_ready), tables.faults_frame(h.faults),
                      tables.reroutes_frame(h.reroutes), h.reroutes_count, dict(h.packets_dropped),
                      h.replays, h.packets_resent)

    @overload
    def events(self, *, after: int = 0) -> pd.DataFrame: ...

    @overload
    def events(self, *, follow: Literal[True], after: int = 0) -> Iterator[Event]: ...

    @overload
    def events(self, *, follow: bool, after: int = 0) -> Union[pd.DataFrame, Iterator[Event]]: ...

    def events(self, *, follow: bool = False,
               after: int = 0) -> Union[pd.DataFrame, Iterator[Event]]:
        """Faults, alerts, reroutes, trees, with a number above ``after``; times in ps.

        With ``follow`` an iterator over those that are kept (4,096 of a run) and those to come,
        until it is closed; else a DataFrame. A ``gap`` says how many are missing; a reader that
        is too slow is cut off (CancelledError).
        """
        request = control_pb2.WatchEventsRequest(after=after, follow=follow)
        batches = self.channel.stream("WatchEvents", request, control_pb2.EventBatch)
        following = (event for batch in batches for event in events_of(batch))
        if follow:
            return following
        return pd.DataFrame(list(following), columns=Event._fields)

    def counters(self, hub: str = "", *, per_hub: bool = True, nonzero: bool = False,
                 vc: bool = False) -> pd.DataFrame:
        """Counters at one virtual time: a row per hub, or one for ``hub`` or (not ``per_hub``) all.

        ``nonzero``: only counters that are not zero everywhere. ``vc``: instead, of ``hub``, a row
        per port and virtual channel. ``percs.counter_list()`` has the units and meanings, which
        are in ``attrs["units"]``, too; latencies are in ns, and NaN without samples.
        """
        if vc and not hub:
            raise errors.FieldError("hub", hub, "is missing", "vc=True needs a hub, like sn0-d1-h3")
        request = control_pb2.GetCountersRequest(node=hub, per_node=per_hub and not hub)
        reply = self.call("GetCounters", request, control_pb2.GetCountersReply)
        if vc:
            return tables.vcs_frame(reply.nodes[0].counters)
        return tables.counters_frame(reply, nonzero)

    def links(self, hub: str = "", *, down: bool = False) -> pd.DataFrame:
        """A row per link, of ``hub`` or of all, or only those down: load and flits both ways."""
        request = control_pb2.ListLinksRequest(node=hub)
        return tables.links_frame(
            self.call("ListLinks", request, control_pb2.ListLinksReply), down)

    def observe(self, *hubs: str, log_level: str = "", metrics_detail: str = "") -> None:
        """Sets the log level of all processes, or the detail of metrics of hubs.

        ``log_level``: debug, info, warning, error or off. ``metrics_detail``: hub, port or vc.
        """
        if not log_level and not metrics_detail:
            raise errors.FieldError("log_level", "", "nothing to set",
                                    "give log_level, or hubs and metrics_detail")
        request = control_pb2.ObserveRequest(log_level=log_level, nodes=hubs,
                                             metrics_detail=metrics_detail)
        self.call("Observe", request, control_pb2.ObserveReply)

    def process(self, name: str) -> Process:
        """``controller``, or a daemon: ``d0``, ``d1``, ..., to kill, stop, continue or restart."""
        return Process(self, name)

    def __repr__(self) -> str:
        return f"Fabric({self.name or self.address!r})"

    def _repr_svg_(self) -> str:
        """The topology with the load of the links; links that are down are red."""
        return self.graph()


def connect(address: str, tls: Union[None, str, "os.PathLike[str]"] = None) -> Fabric:
    """A fabric that is running: ``host:port`` or ``unix:/path`` of its controller.

    ``tls``: folder of the identity to use there (operator or viewer, made by ``percs.ca``); None:
    plaintext. Raises UnreachableError or RefusedError at once if it cannot be used.
    """
    fabric = Fabric(address, tls)
    try:
        fabric.call("Version", control_pb2.VersionRequest(), control_pb2.VersionReply)
    except errors.PercsError:
        fabric.close()
        raise
    return fabric
