"""Faults of a running fabric, as resources (docs/faults.md)."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any, Dict, Optional, Type, Union

from percs import _fields, errors, tables
from percs._caller import Caller
from percs._fields import Time, Value
from percs.v1 import control_pb2, scenario_pb2

LEASE_SECONDS = 30.0
_RENEW_EVERY_SECONDS = 5.0


def message_of(id: str, at: Optional[Time],
               fields: Dict[str, Optional[Value]]) -> scenario_pb2.Fault:
    """The message of a fault; FieldError for a field that it does not have, or a wrong value."""
    fault = scenario_pb2.Fault(id=id)
    if at is not None:
        fault.at = _fields.time_ps("at", at)
    inject = fault.inject
    unknown = _fields.set_fields(inject, fields)
    unknown = _fields.set_fields(inject.select, {name: fields[name] for name in unknown})
    if unknown:
        kinds = (inject.DESCRIPTOR, inject.select.DESCRIPTOR)
        names = [field.name for kind in kinds for field in kind.fields
                 if field.message_type is None]
        raise errors.FieldError(unknown[0], fields[unknown[0]],
                                 f'no field "{unknown[0]}" in a fault'
                                 f"{_fields.nearest(unknown[0], names)}",
                                 "fields: " + ", ".join(names))
    if not inject.HasField("kind"):
        choices = _fields.choices_of(inject.DESCRIPTOR.fields_by_name["kind"].enum_type)
        raise errors.FieldError("kind", None, "is missing", "choices: " + ", ".join(choices))
    return fault


class Fault:
    """A fault of a fabric, by its id. As a context manager it is deleted at the end."""

    def __init__(self, fabric: Caller, id: str, at_ps: int = 0,
                 lease_seconds: Optional[float] = None) -> None:
        self.id = id
        self.at_ps = at_ps  # virtual time of the command that created it
        self._fabric = fabric
        self._lease = lease_seconds
        self._ended = threading.Event()
        self._renewer: Optional[threading.Thread] = None

    @property
    def status(self) -> Dict[str, Any]:
        """Kind, phase, places, times in ps, cost; NaN where it is not known (yet)."""
        reply = self._fabric.call("ListFaults", control_pb2.ListFaultsRequest(id=self.id),
                                  control_pb2.ListFaultsReply)
        return tables.fault_row(reply.faults[0])

    @property
    def phase(self) -> str:
        """scheduled, active, paused, recovering or recovered."""
        return str(self.status["phase"])

    def update(self, *, kind: str, at: Optional[Time] = None, **fields: Value) -> "Fault":
        """Replaces its settings; the fields are those of ``Fabric.create_fault``."""
        fault = message_of(self.id, at, {"kind": kind, **fields})
        reply = self._fabric.call("UpdateFault", control_pb2.UpdateFaultRequest(fault=fault),
                                  control_pb2.FaultReply)
        self.at_ps = reply.at
        return self

    def hold(self) -> int:
        """Renews its lease; returns for how many milliseconds of wall time it holds from now on."""
        return self._fabric.call("HoldFault", control_pb2.HoldFaultRequest(id=self.id),
                                 control_pb2.HoldFaultReply).lease_wall_ms

    def delete(self) -> int:
        """Deletes it, which ends it if it is in force; returns the virtual time of that in ps."""
        self._ended.set()
        return self._fabric.call("DeleteFault", control_pb2.DeleteFaultRequest(id=self.id),
                                 control_pb2.FaultReply).at

    def _renew(self) -> None:
        while not self._ended.wait(min(_RENEW_EVERY_SECONDS, (self._lease or 0) / 3)):
            try:
                self.hold()
            except errors.UnreachableError:
                continue  # another controller may take over in time
            except errors.PercsError:
                return  # it was deleted, or the run has ended

    def __enter__(self) -> "Fault":
        if self._lease:
            self._renewer = threading.Thread(target=self._renew, daemon=True,
                                             name=f"lease of fault {self.id}")
            self._renewer.start()
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        try:
            self.delete()
        except (errors.NotFoundError, errors.StateError):
            pass  # it was deleted meanwhile, or with the run
        if self._renewer:
            self._renewer.join()

    def __repr__(self) -> str:
        return f"Fault({self.id!r})"


def lease_ms(lease: Union[None, str, int, float]) -> int:
    """Milliseconds of a lease of wall time; 0 without one."""
    if lease is None:
        return 0
    milliseconds = _fields.wall_ms("lease", lease)
    if milliseconds < 1:
        raise errors.FieldError("lease", lease, f"{lease} is less than a millisecond",
                                 "write 1ms or more")
    return milliseconds
