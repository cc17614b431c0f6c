"""What is on this machine: local fabrics and their processes, contexts, authorities."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Dict, List, Union

import pandas as pd

from percs import _program, errors
from percs.v1 import control_pb2

if TYPE_CHECKING:
    from percs.fabric import Fabric

Path = Union[str, "os.PathLike[str]"]


def records() -> List[Dict[str, Any]]:
    """What percsctl has recorded of local fabrics and contexts, with their state."""
    rows: List[Dict[str, Any]] = _program.run_json("ps")
    return rows


def record_of(name: str) -> Dict[str, Any]:
    """Of one. NotFoundError names those there are."""
    rows = records()
    for row in rows:
        if row["name"] == name:
            return row
    names = ", ".join(row["name"] for row in rows)
    raise errors.NotFoundError(f'no local fabric is called "{name}"; ' +
                               (f"there are: {names}" if names else
                                "there is none, `Fabric.local` starts one"))


def fabrics() -> pd.DataFrame:
    """Local fabrics and contexts: state, virtual time in ps, address, processes that run."""
    rows = [{"name": r["name"], "transport": r["transport"], "state": r["state"],
             "virtual_ps": float("nan") if r["virtual_ps"] is None else float(r["virtual_ps"]),
             "controller": r["controller"], "processes": len(r["processes"]),
             "running": sum(p["running"] for p in r["processes"])} for r in records()]
    columns = ["name", "transport", "state", "virtual_ps", "controller", "processes", "running"]
    return pd.DataFrame(rows, columns=columns).set_index("name")


def down_all() -> List[str]:
    """Shuts all local fabrics down; returns their names."""
    return [row["name"] for row in _program.run_json("down", "--all")]


class Process:
    """A process of a fabric: ``controller``, ``d0``, ``d1``, ... All is outside of virtual time."""

    def __init__(self, fabric: "Fabric", name: str) -> None:
        self._fabric = fabric
        self.name = name

    def _act(self, action: str) -> int:
        if not self._fabric.name:
            raise errors.StateError(f"{action}: only for processes of a local fabric; this one is "
                                    "elsewhere")
        return int(_program.run_json("process", action, self.name, "--name",
                                     self._fabric.name)["pid"])

    def kill(self) -> int:
        """Kills it, as a crash would; returns its pid."""
        return self._act("kill")

    def stop(self) -> int:
        """Freezes it."""
        return self._act("stop")

    def continue_(self) -> int:
        """Continues it after ``stop``."""
        return self._act("continue")

    def restart(self) -> int:
        """Starts it again with the same flags; one that runs is killed first. The new pid."""
        return self._act("restart")

    def break_streams(self) -> int:
        """Breaks a daemon's gRPC streams, which are opened again: no result changes.

        Returns how often it had reconnected before. Of any fabric.
        """
        request = control_pb2.BreakStreamsRequest(process=self.name)
        return self._fabric.call("BreakStreams", request, control_pb2.BreakStreamsReply).reconnects


def contexts() -> pd.DataFrame:
    """Fabrics elsewhere, and the role used there; ``Fabric.named`` connects to one."""
    rows = _program.run_json("context", "list")
    return pd.DataFrame(rows, columns=["name", "controller", "role"]).set_index("name")


def import_context(name: str, controller: str, file: Path) -> None:
    """Saves an address (host:port) and an identity, the text of ``export_context``."""
    _program.run("context", "import", name, file, "--controller", controller)


def export_context(folder: Path) -> str:
    """An identity, of a folder that ``ca`` made, as one text. It contains the private key."""
    return _program.run("context", "export", folder)


def delete_context(name: str) -> None:
    """Deletes a context and its identity."""
    _program.run("context", "delete", name)


def ca(folder: Path, *, days: int = 365, renew: bool = False) -> Dict[str, str]:
    """Creates an authority and an identity per role, unless valid ones are there: folders by role.
    """
    made = _program.run_json("ca", folder, *_program.options(days=days, renew=renew))
    roles: Dict[str, str] = made["roles"]
    return roles
