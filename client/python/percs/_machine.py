"""The part of Fabric that is about routes, trees, traces, checkpoints and windows."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import tempfile
from typing import Any, Dict, List, Optional, Sequence, Union

import pandas as pd

from percs import _fields, _program, errors, tables
from percs._caller import Caller
from percs.scenario import Scenario
from percs.v1 import control_pb2
from percs.window import Window

Path = Union[str, "os.PathLike[str]"]


class Machine(Caller):
    """Routes, trees, traces, checkpoints, windows."""

    # --- Routes

    def routes(self, source: str, destination: str, *, mode: str = "hw_direct",
               middle: Optional[int] = None) -> pd.DataFrame:
        """A row per hop of every route that the tables allow between two hubs.

        ``mode``: of the packets; ``middle``: indirect modes only over this supernode. ``up`` is
        False where a link is down, also before network management has replanned.
        """
        found = _program.run_json("routes", source, destination,
                                  *_program.options(mode=mode, middle=middle), *self.arguments())
        rows = [{"route": number, "hop": place, "hub": hop["node"], "link": hop["link"],
                 "class": hop["class"], "vc": hop["vc"], "choices": hop["choices"],
                 "up": hop["up"], "problem": route["problem"]}
                for number, route in enumerate(found["routes"], 1)
                for place, hop in enumerate(route["hops"])]
        columns = ["route", "hop", "hub", "link", "class", "vc", "choices", "up", "problem"]
        frame = pd.DataFrame(rows, columns=columns).set_index(["route", "hop"])
        frame.attrs["epoch"] = found["epoch"]
        return frame

    def dump_routes(self, output: Optional[Path] = None, *, node: Optional[str] = None,
                    scenario: Optional[Path] = None,
                    down: Sequence[str] = ()) -> Dict[str, Any]:
        """The route tables of every hub, or of one, also as a file for ``load_routes``.

        ``scenario``: instead, those it would start with, while the links ``down`` are down.
        """
        return dump_routes(scenario, output, node=node, down=down, fabric=self)

    def load_routes(self, file: Path) -> Dict[str, int]:
        """Checks tables and installs them as a new epoch.

        Returns ``epoch``, ``at_ps``, ``hubs_changed``, ``unreachable_pairs``. StateError with the
        witness if they fail the proof. ``percs.check_routes`` only checks.
        """
        reply: Dict[str, int] = _program.run_json("routes", "load", file, *self.arguments())
        return reply

    def diff_routes(self, before: Path, after: Optional[Path] = None) -> List[str]:
        """One line per entry that differs; without ``after``: from the tables in effect now."""
        return diff_routes(before, after, fabric=self)

    def graph(self, output: Optional[Path] = None, *, type: Optional[str] = None) -> str:
        """A drawing of the machine with the load of its links, as text, and as a file ``output``.

        ``type``: dot, mermaid, svg or matrix; default: svg, or matrix for more than 128 nodes.
        """
        return graph(None, output, type=type, fabric=self)

    def top(self, *, interval: Union[str, float] = "1s", sort: str = "load") -> None:
        """Shows the fabric on this terminal, refreshed, until ``q`` is pressed there.

        ``sort``: load, drops or name. PercsError without a terminal.
        """
        arguments = ["top", "--interval", f"wall:{_fields.wall_ms('interval', interval)}ms",
                     *_program.options(sort=sort), *self.arguments()]
        done = subprocess.run(_program.command(arguments), stderr=subprocess.PIPE, text=True)
        _program.finish(arguments, done.returncode, "", done.stderr)

    # --- Trees of CAUs

    def create_tree(self, name: str, members: str, *, relays: Optional[str] = None,
                    fan_out: int = 8, order: str = "fixed") -> int:
        """Plans a tree over ``members``: hubs, drawers, supernodes or ``all``, with commas.

        ``relays``: hubs whose CAU only forwards; ``order`` of operands: fixed or arrival. Returns
        the virtual time in ps when network management starts; ``trees()`` shows the state.
        """
        request = control_pb2.CreateTreeRequest()
        _fields.set_fields(request.tree, {"name": name, "members": members, "relays": relays,
                                          "fan_out": fan_out, "order": order})
        return self.call("CreateTree", request, control_pb2.CreateTreeReply).at

    def delete_tree(self, name: str) -> int:
        """Deletes a tree; returns the virtual time in ps when that starts."""
        return self.call("DeleteTree", control_pb2.DeleteTreeRequest(name=name),
                         control_pb2.DeleteTreeReply).at

    def trees(self, name: str = "") -> pd.DataFrame:
        """All trees, or one with its ``vertices``: hub, index of the parent, participant."""
        request = control_pb2.ListTreesRequest(name=name)
        return tables.trees_frame(
            self.call("ListTrees", request, control_pb2.ListTreesReply).trees)

    # --- Packets followed hop by hop

    def trace(self, scenario: Union[None, Scenario, Path] = None, *, from_: str = "",
              to: str = "", packet: int = 1, every: int = 1, count: int = 1,
              message: Optional[int] = None, kind: Sequence[str] = (),
              since: Optional[str] = None, until: Optional[str] = None,
              timeout: Union[str, float] = "30s") -> pd.DataFrame:
        """Follows packets from now on: a row per hop, times in ps, what it waited for.

        Of the packets from ``from_`` to ``to`` (any: ""), those with the numbers ``packet``,
        ``packet + every``, ...; ``count`` per source; with ``message`` only its packets.
        ``kind``, ``since`` and ``until`` as in percs.trace().
        ``scenario``: applies it first, and follows from the start. Returns when the packets have
        arrived or were dropped, the run has ended, or after ``timeout`` wall time.
        """
        chosen = Scenario(scenario) if isinstance(scenario, (str, os.PathLike)) else scenario
        applied = [str(chosen.path), "--apply", *chosen.arguments()] if chosen else []
        found = _program.run_json(
            "trace", *applied,
            *_program.options(from_=from_ or None, to=to or None, packet=packet, every=every,
                              count=count, message=message, kind=kind, since=since, until=until,
                              timeout=f"wall:{_fields.wall_ms('timeout', timeout)}ms"),
            *self.arguments())
        return tables.traced_frame(found["packets"])

    # --- Positions of a run

    def checkpoint(self, folder: Path, *, journal: Optional[Path] = None) -> Dict[str, Any]:
        """Saves scenario, commands, virtual time and digest; ``percs.restore`` continues there.

        ``journal``: the controller's --state-dir; default: the local fabric's.
        """
        where = ["--name", self.name] if self.name else self.arguments()
        saved: Dict[str, Any] = _program.run_json("checkpoint", folder, *where,
                                                  *_program.options(journal=journal))
        return saved

    def restore(self, folder: Path) -> Dict[str, Any]:
        """Re-runs to a checkpoint on the daemons; ViolationError if the digest differs."""
        restored: Dict[str, Any] = _program.run_json("restore", folder, "--distributed",
                                                     *self.arguments())
        return restored

    def replay(self, journal: Path, *, run: Optional[int] = None) -> Dict[str, Any]:
        """Runs a journal again on the daemons; ViolationError if the digest differs."""
        replayed: Dict[str, Any] = _program.run_json("replay", journal, "--distributed",
                                                     *_program.options(run=run), *self.arguments())
        return replayed

    # --- Programs at hubs

    def window(self, hub: str, **options: Any) -> Window:
        """Attaches this program to a window of a hub; the keywords are those of ``Window``."""
        reply = self.call("FindHub", control_pb2.FindHubRequest(hub=hub), control_pb2.FindHubReply)
        options.setdefault("tls", self.tls)
        return Window(reply.address, hub, **options)

    def tun(self, hub: str, *, device: Optional[str] = None,
            window: Optional[int] = None) -> "subprocess.Popen[str]":
        """Starts a TUN interface for a hub; the process runs until it gets SIGINT.

        Needs CAP_NET_ADMIN. Its standard output says the address.
        """
        command = _program.command(["tun", hub, *_program.options(device=device, window=window),
                                    *self.arguments()])
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)


def graph(scenario: Union[None, Scenario, Path], output: Optional[Path] = None, *,
          type: Optional[str] = None, fabric: Optional[Machine] = None) -> str:
    """A drawing of the machine of a scenario, or (None) of ``fabric`` with the load of its links.

    As text, and as a file ``output``. ``type``: dot, mermaid, svg or matrix; default: by the name
    of ``output``, or svg. An svg of more than 128 nodes is a matrix.
    """
    changes: List[str] = []
    if isinstance(scenario, Scenario):
        changes, scenario = scenario.arguments(), scenario.path
    with tempfile.TemporaryDirectory(prefix="percs-") as folder:
        file = pathlib.Path(folder) / (pathlib.Path(output).name if output else "machine.svg")
        _program.run("graph", *([scenario] if scenario else []), "--output", file,
                     *_program.options(type=type), *changes,
                     *(fabric.arguments() if fabric and not scenario else []))
        drawing = file.read_text()
    if output is not None:
        pathlib.Path(output).write_text(drawing)
    return drawing


def dump_routes(scenario: Optional[Path], output: Optional[Path] = None, *,
                node: Optional[str] = None, down: Sequence[str] = (),
                fabric: Optional[Machine] = None) -> Dict[str, Any]:
    """The route tables that a scenario starts with, or (None) those of ``fabric``.

    ``down``: links that are down; ``node``: only the tables of this hub; ``output``: also a file.
    """
    text = _program.run("routes", "dump", *([scenario] if scenario else []),
                        *_program.options(node=node, down=down),
                        *(fabric.arguments() if fabric and not scenario else []))
    if output is not None:
        pathlib.Path(output).write_text(text)
    document: Dict[str, Any] = json.loads(text)
    return document


def check_routes(file: Path, scenario: Path, *, down: Sequence[str] = ()) -> Dict[str, int]:
    """Proves tables for a scenario while the links ``down`` are down.

    Returns ``unreachable_pairs``, ``hops_max``, ``indirect_hops_max``. ScenarioError with the
    witness if they fail.
    """
    text = _program.run("routes", "load", file, "--scenario", scenario,
                        *_program.options(down=down))
    numbers = re.findall(r"\d+", text)
    return dict(zip(("unreachable_pairs", "hops_max", "indirect_hops_max"), map(int, numbers)))


def diff_routes(before: Path, after: Optional[Path] = None, *,
                fabric: Optional[Machine] = None) -> List[str]:
    """One line per entry that differs between two files, or from the tables of ``fabric``."""
    arguments = ["routes", "diff", str(before), *([str(after)] if after else []), "--format",
                 "json", *(fabric.arguments() if fabric and not after else [])]
    done = subprocess.run(_program.command(arguments), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if not done.stdout.strip():
        _program.finish(arguments, done.returncode or 1, "", done.stderr)
    lines: List[str] = json.loads(done.stdout)["differences"]
    return lines
