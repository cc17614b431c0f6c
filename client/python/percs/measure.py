"""Measurements in one process, without a fabric of daemons. All times are virtual."""

from __future__ import annotations

import json
import os
import pathlib
import tempfile
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Union

import pandas as pd

from percs import _fields, _program, errors
from percs._fields import Time, Value
from percs.result import Result, table
from percs.scenario import Scenario, written
from percs.tables import traced_frame

Path = Union[str, "os.PathLike[str]"]
Sizes = Union[None, int, str, Sequence[Union[int, str]]]  # 64, "64KiB", "8..1MiB", or a list


def _file(scenario: Union[Scenario, Path]) -> Scenario:
    return scenario if isinstance(scenario, Scenario) else Scenario(scenario)


def _list(values: Union[None, int, str, Sequence[Union[int, str]]]) -> Optional[str]:
    """With commas, as percsctl takes it."""
    if values is None:
        return None
    return str(values) if isinstance(values, (int, str)) else ",".join(map(str, values))


def run_arguments(scenario: Union[Scenario, Path], threads: int = 1, routes: Optional[Path] = None,
                  events: bool = False, checkpoint: Optional[Path] = None,
                  checkpoint_at: Optional[Time] = None, perfetto: Optional[Path] = None,
                  perfetto_every: int = 1, page: Optional[str] = None) -> List[str]:
    """Of percsctl."""
    chosen = _file(scenario)
    at = None if checkpoint_at is None else f"{_fields.time_ps('checkpoint_at', checkpoint_at)}ps"
    return ["run", str(chosen.path), *chosen.arguments(),
            *_program.options(threads=threads, routes=routes, events=events,
                              checkpoint=checkpoint, checkpoint_at=at, perfetto=perfetto,
                              perfetto_every=perfetto_every if perfetto else None, page=page)]


def run(scenario: Union[Scenario, Path], *, threads: int = 1, routes: Optional[Path] = None,
        events: bool = False, checkpoint: Optional[Path] = None,
        checkpoint_at: Optional[Time] = None, perfetto: Optional[Path] = None,
        perfetto_every: int = 1, page: Optional[str] = None,
        on_page: Optional[Callable[[str], None]] = None) -> Result:
    """Runs a scenario from start to end, as fast as this machine allows.

    ``threads`` change how long it takes, never the result. ``routes``: route tables to start with.
    ``events``: the result has events, too. ``checkpoint`` with ``checkpoint_at``: folder and
    virtual time of a checkpoint. ``perfetto``: file for a trace of packets, of every
    ``perfetto_every``-th. ``page``: HOST:PORT (port 0: any free one) of a page for browsers, which
    shows the run while it lasts; ``on_page`` is called with its link, else the link is printed.
    ScenarioError, DeadlockError, ViolationError (with the report).
    """
    arguments = run_arguments(scenario, threads, routes, events, checkpoint, checkpoint_at,
                              perfetto, perfetto_every, page)
    if page is None:
        return Result(_program.run_json(*arguments))
    return Result(_program.run_json_with_page(on_page or print, *arguments))


def restore(folder: Path, *, threads: int = 1) -> Result:
    """Re-runs to a checkpoint, verifies it (ViolationError), and continues to the end."""
    return Result(_program.run_json("restore", folder, *_program.options(threads=threads)))


def replay(journal: Path, *, run: Optional[int] = None, threads: int = 1) -> Dict[str, Any]:
    """Runs the journal of a controller again: ``digest``, ``live_digest``, ``equal``, ``commands``.

    ``journal``: its --state-dir. ViolationError if the digests differ.
    """
    done: Dict[str, Any] = _program.run_json("replay", journal,
                                             *_program.options(run=run, threads=threads))
    return done


def journal(path: Path, *, run: Optional[int] = None) -> pd.DataFrame:
    """The commands of a run in the journal of a controller, with their virtual times in ps."""
    done = _program.run_json("replay", path, "--list", *_program.options(run=run))
    return table(done["commands"], ("at_ps", "command"))


def trace(scenario: Union[Scenario, Path], *, from_: str = "", to: str = "", packet: int = 1,
          every: int = 1, count: int = 1, message: Optional[int] = None, kind: Sequence[str] = (),
          since: Optional[str] = None, until: Optional[str] = None) -> pd.DataFrame:
    """Runs a scenario and follows packets: a row per hop, times in ps, what it waited for.

    Of the packets from ``from_`` to ``to`` (any: ""), those with the numbers ``packet``,
    ``packet + every``, ...; ``count`` per source; with ``message`` only its packets. ``kind``:
    "data", "management", ..., or "all"; default: all but management. Only packets created from
    ``since`` on and before ``until``, like "40us".
    """
    chosen = _file(scenario)
    found = _program.run_json(
        "trace", chosen.path, *chosen.arguments(),
        *_program.options(from_=from_ or None, to=to or None, packet=packet, every=every,
                          count=count, message=message, kind=kind, since=since, until=until))
    return traced_frame(found["packets"])


def capture(scenario: Union[Scenario, Path], output: Path, *, format: str = "pcapng",
            from_: str = "", to: str = "", packet: int = 1, every: int = 1, count: int = 1,
            message: Optional[int] = None, kind: Sequence[str] = (), since: Optional[str] = None,
            until: Optional[str] = None, scale: Optional[str] = None) -> None:
    """Runs a scenario and writes packets, chosen as in trace(), for Wireshark or Perfetto.

    ``format``: pcapng or perfetto; ``scale``, of perfetto: ps (exact) or ns.
    """
    chosen = _file(scenario)
    _program.run("trace", chosen.path, *chosen.arguments(), "--format", format,
                 *_program.options(from_=from_ or None, to=to or None, packet=packet, every=every,
                                   count=count, message=message, kind=kind, since=since,
                                   until=until, scale=scale, output=output))


def view(source: Union[Scenario, Path], output: Path, *, run: Optional[int] = None,
         result: Optional[Path] = None, threads: int = 1) -> str:
    """Writes a run as a page for browsers, one HTML file with a time line; returns its digest.

    ``source``: a scenario, which is run; or the --state-dir of a controller or a checkpoint, whose
    run (``run``: its number, or the last) is run again. ``result``: JSON of percsctl, of a run that
    has to be the same (ViolationError).
    """
    given: List[_program.Argument] = [source] if not isinstance(source, Scenario) else [
        source.path, *source.arguments()]
    return str(_program.run_json("view", *given, *_program.options(
        output=output, run=run, result=result, threads=threads))["digest"])


def picture(kind: str, files: Sequence[Path], output: Path) -> None:
    """Draws files that percsctl wrote as JSON, with gnuplot: a .svg or .png.

    ``kind``: links, latency, curves, load or ranks. For plots in a notebook see percs.plot.
    """
    _program.run("plot", kind, *files, "--output", output)


def collective(operation: str, *, nodes: Optional[int] = None, sizes: Sizes = None,
               tasks: Optional[int] = None, algorithm: Optional[str] = None,
               iterations: Optional[int] = None, smt: Optional[int] = None,
               mapping: Optional[str] = None, root: Optional[int] = None, op: Optional[str] = None,
               type: Optional[str] = None, warm_up: Optional[int] = None,
               rotating_root: bool = False, lengths_only: bool = False,
               blade: Optional[str] = None, spes: Optional[int] = None,
               elements: Optional[int] = None, loop: Optional[str] = None) -> pd.DataFrame:
    """Measures a collective in its loop, a row per size: mean, fastest and slowest task in ns.

    ``operation``: barrier, broadcast, reduce, allreduce, alltoall, ... ``tasks``: per node;
    ``algorithm``: layer or layer:algorithm (docs/collectives.md); ``sizes``: bytes, one, a list or
    a doubling range ``"8..1MiB"``. With ``blade`` (QS20, QS21, QS22): among the SPEs of a Cell
    blade. ViolationError if data were wrong.
    """
    found = _program.run_json("collective", operation, *_program.options(
        nodes=nodes, size=_list(sizes), tasks=tasks, algorithm=algorithm, iterations=iterations,
        smt=smt, mapping=mapping, root=root, op=op, type=type, warm_up=warm_up,
        rotating_root=rotating_root, lengths_only=lengths_only, blade=blade, spes=spes,
        elements=elements, loop=loop))
    if blade is not None:
        return table([found])
    rows = []
    for row in found.pop("rows"):
        levels = row.pop("levels_ns")
        rows.append({"bytes": row["bytes"], "mean_ns": row["nanoseconds"],
                     "fastest_ns": row["fastest_ns"], "slowest_ns": row["slowest_ns"],
                     **{f"{name}_ns": time for name, time in levels.items()},
                     "iterations": row["iterations"], "wrong": row["wrong"],
                     "digest": row["digest"]})
    frame = table(rows)
    frame.attrs.update(found)
    return frame


def ping(from_: str, to: str, *, count: Optional[int] = None, bytes: Union[None, int, str] = None,
         interval: Optional[str] = None, mode: Optional[str] = None,
         scenario: Union[None, Scenario, Path] = None) -> pd.DataFrame:
    """Sends packets back and forth between windows of two hubs: a row per round trip, in ns.

    ``mode``: immediate, fifo or rdma; ``interval``: virtual time between round trips;
    ``scenario``: the machine (default: two supernodes).
    """
    found = _program.run_json("ping", from_, to, *_machine(scenario), *_program.options(
        count=count, bytes=bytes, interval=interval, mode=mode))
    return pd.DataFrame({"round_trip_ns": [ps / 1000 for ps in found["round_trips_ps"]]})


def perf(from_: str, to: str, *, sizes: Sizes = None, mode: Optional[str] = None,
         iterations: Optional[int] = None, round_trips: Optional[int] = None,
         protocol: Optional[str] = None,
         scenario: Union[None, Scenario, Path] = None) -> pd.DataFrame:
    """Measures messages between windows of two hubs, or between two SPEs: a row per size.

    Latencies in ps, rates in bytes and messages per second. ``mode``: immediate, fifo, rdma;
    ``protocol`` (SPEs): receiver or sender.
    """
    found = _program.run_json("perf", from_, to, *_machine(scenario), *_program.options(
        bytes=_list(sizes), mode=mode, iterations=iterations, round_trips=round_trips,
        protocol=protocol))
    frame = table(found.pop("sizes"))
    frame.attrs.update(found)
    return frame


def _machine(scenario: Union[None, Scenario, Path]) -> List[str]:
    if scenario is None:
        return []
    chosen = _file(scenario)
    if chosen.seed is not None:
        raise errors.FieldError("scenario", chosen, "a seed does not change a machine",
                                "leave seed out")
    return ["--scenario", str(chosen.path), *chosen.arguments()]


def mpirun(program: Sequence[Union[str, Path]], *, ranks: int,
           scenario: Union[None, Scenario, Path] = None, map_by: Optional[str] = None,
           compute: str = "zero", collectives: Optional[str] = None,
           open_mpi: Sequence[str] = (), report: Optional[Path] = None,
           control: Optional[str] = None, journal: Optional[Path] = None,
           daemons: Optional[int] = None, name: Optional[str] = None,
           controller: Optional[str] = None, tls: Optional[Path] = None,
           job: Optional[int] = None, first_window: Optional[int] = None,
           dry_run: bool = False) -> Any:
    """Runs an unmodified MPI program on an emulated machine (docs/mpi.md).

    ``program``: with its arguments. Returns the report as a dict, with what the program printed as
    ``output``; with ``dry_run`` the command that would be started. ``report``: a file that keeps
    the report, too. ``control``: ``unix:PATH`` where faults of the machine are changed meanwhile.
    ``collectives``: p2p, cau or auto. ``journal``: a folder from which ``replay`` runs again what
    the program did. Errors as of run.

    ``daemons``: as many are started and have the hubs; ``name``, or ``controller`` and ``tls``: the
    hubs of a fabric that runs. There ``job`` is the program's key, and its windows begin with
    number ``first_window`` of each hub.
    """
    chosen = [] if scenario is None else [str(_file(scenario).path), *_file(scenario).arguments()]
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "report.json" if report is None else pathlib.Path(report)
        output = _program.run("mpirun", *_program.options(
            ranks=ranks, map_by=map_by, compute=compute, collectives=collectives, report=file,
            control=control, journal=journal, daemons=daemons, name=name, controller=controller,
            tls=tls, job=job, first_window=first_window, dry_run=dry_run),
            *(f"--open-mpi={one}" for one in open_mpi), *chosen, "--", *program)
        if dry_run:
            return output.strip()
        return {**json.loads(file.read_text()), "output": output}


def sweep3d(*, cus: Sequence[int] = (1,), k_block: Optional[int] = None,
            angle_block: Optional[int] = None) -> pd.DataFrame:
    """Weak scaling of Sweep3D on Roadrunner: a row per number of CUs, times in ps."""
    found = _program.run_json("sweep3d", *_program.options(cus=_list(list(cus)), k_block=k_block,
                                                           angle_block=angle_block))
    return table(found["points"])


def collective_roots(operation: str, *, nodes: Optional[int] = None, size: Sizes = None,
                     tasks: Optional[int] = None, algorithm: Optional[str] = None,
                     smt: Optional[int] = None, mapping: Optional[str] = None) -> pd.Series:
    """Mean time in us with each task as the root of all calls; ``"rotating"``: a moving root."""
    found = _program.run_json("collective", operation, "--every-root", *_program.options(
        nodes=nodes, size=_list(size), tasks=tasks, algorithm=algorithm, smt=smt, mapping=mapping))
    roots = [*range(len(found["fixed_us"])), "rotating"]
    return pd.Series([*found["fixed_us"], found["rotating_us"]], index=roots, name="mean_us")


def validate(machine: str, *, only: Optional[str] = None, withhold: Optional[Path] = None,
             without: Optional[str] = None) -> pd.DataFrame:
    """Emulated figures beside published ones (docs/fidelity.md); ``attrs["summary"]`` sums up.

    ``machine``: cell, p7ih, roadrunner, smartmap or all; ``only``: rows whose id starts with this;
    ``withhold``: judge against the figures of this CSV file instead; ``without``: measure p7ih
    without this mechanism. ``error`` is a share, NaN for rows without one.
    """
    found = _program.run_json("validate", machine, *_program.options(
        only=only, withhold=withhold, without=without))
    frame = table(found["rows"]).set_index("id")
    frame.attrs["summary"] = found["summary"]
    frame.attrs["unmatched"] = found["unmatched"]
    return frame


def validation_page(machine: str, *, only: Optional[str] = None,
                    withhold: Optional[Path] = None) -> str:
    """The same as a page of HTML with drawings."""
    return _program.run("validate", machine, "--format", "html",
                        *_program.options(only=only, withhold=withhold))


def version() -> Dict[str, Any]:
    """Versions: software, wire, file format, model."""
    versions: Dict[str, Any] = _program.run_json("version")
    return versions


def sweep(scenario: Union[Scenario, Path],
          over: Mapping[str, Union[str, Sequence[Value]]], *, repeat: int = 1, jobs: int = 1,
          threads: int = 1, cache: Optional[Path] = None, plot: bool = False,
          slurm: bool = False) -> pd.DataFrame:
    """Runs a scenario at every point of a grid: a row per point (docs/sweep.md has the columns).

    ``over``: fields with their values, a list, or as text with ranges, ``"0.1..0.9:0.1"``; the last
    one changes fastest. ``repeat``: runs of each combination, with one seed after the other.
    ``jobs``: points at a time; ``threads`` of each run. ``cache``: folder that keeps what is done,
    so that a sweep that was killed continues, and the same one computes nothing; ``plot``: with a
    drawing in it. ``slurm``: as a job array of ``jobs`` tasks, with ``cache`` on a file system that
    its nodes share. A run that failed is a row, too, with its ``error``. NaN: there is no sample.
    """
    chosen = _file(scenario)
    axes: List[str] = []
    for path, values in over.items():
        field = _fields.scenario_field(path)
        if not isinstance(values, str):
            for value in values:
                _fields.parse(path, field, value)
            values = ",".join(written(path, value) for value in values)
        axes += ["--over", f"{path}={values}"]
    with tempfile.TemporaryDirectory(prefix="percs-sweep-") as temporary:
        folder = pathlib.Path(cache) if cache is not None else pathlib.Path(temporary)
        arguments = ["sweep", str(chosen.path), *axes, *chosen.arguments(), "--output", str(folder),
                     *_program.options(repeat=repeat, jobs=jobs, threads=threads, plot=plot,
                                        slurm=slurm)]
        try:
            _program.run(*arguments)
        except errors.PercsError as error:
            if "column `error`" not in str(error):
                raise
        lines = (folder / "table.jsonl").read_text().splitlines()
    return table([json.loads(line) for line in lines])
