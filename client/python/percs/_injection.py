"""The part of Fabric that breaks things on purpose."""

from __future__ import annotations

from typing import Any, Dict, Optional, Union

import pandas as pd

from percs import _fields, errors, faults, tables
from percs._caller import Caller
from percs._fields import Time, Value
from percs.v1 import control_pb2, scenario_pb2


class Injections(Caller):
    """Faults as resources, and single commands to links and blades."""

    def _create(self, id: str, at: Optional[Time], milliseconds: int,
                fields: Dict[str, Optional[Value]]) -> control_pb2.FaultReply:
        request = control_pb2.CreateFaultRequest(fault=faults.message_of(id, at, fields),
                                                 lease_wall_ms=milliseconds)
        return self.call("CreateFault", request, control_pb2.FaultReply)

    def create_fault(self, id: str, *, kind: str, link: Optional[str] = None,
                     link_class: Optional[str] = None, in_: Optional[str] = None,
                     to: Optional[str] = None, at: Optional[Time] = None,
                     lease: Union[None, str, float] = None,
                     **fields: Optional[Value]) -> faults.Fault:
        """Creates a fault, which lasts for its ``duration`` or until it is deleted.

        ``kind``: link_down, hub_down, bit_errors, ... (docs/faults.md). ``link``, ``link_class``,
        ``in_`` and ``to`` select places; ``mode``, ``count``, ``percent`` and ``seed`` choose among
        them. ``at``: virtual time; default: now. ``lease``: wall time after which it is deleted
        unless ``Fault.hold`` renews it. All other fields of a fault (``duration``, ``period``,
        ``duty``, ``repeats``, ``lanes``, ``flit_error_rate``, ...) are keywords, too, written as in
        a scenario: ``duration="50us"``. ``duration="wall:30s"`` is a lease that is not renewed.

        FieldError for a wrong field or value; NotFoundError if nothing matches; ExistsError.
        """
        duration = fields.get("duration")
        if isinstance(duration, str) and duration.startswith("wall:"):
            if lease is not None:
                raise errors.FieldError("lease", lease, f"duration {duration} is a lease, too",
                                        "leave lease out")
            lease, fields["duration"] = duration, None
        reply = self._create(id, at, faults.lease_ms(lease),
                             {"kind": kind, "link": link, "link_class": link_class, "in": in_,
                              "to": to, **fields})
        return faults.Fault(self, id, reply.at)

    def fault(self, id: str, *, kind: str, link: Optional[str] = None,
              link_class: Optional[str] = None, in_: Optional[str] = None,
              to: Optional[str] = None, at: Optional[Time] = None,
              **fields: Optional[Value]) -> faults.Fault:
        """For ``with``: creates a fault that is deleted at the end of the block.

        It has a lease of 30 s of wall time, renewed inside the block, so that it does not stay when
        this program dies. The keywords are those of ``create_fault``.
        """
        created = self.create_fault(id, kind=kind, link=link, link_class=link_class, in_=in_,
                                    to=to, at=at, lease=faults.LEASE_SECONDS, **fields)
        return faults.Fault(self, id, created.at_ps, faults.LEASE_SECONDS)

    def preview_fault(self, id: str = "preview", *, kind: str, link: Optional[str] = None,
                      link_class: Optional[str] = None, in_: Optional[str] = None,
                      to: Optional[str] = None, **fields: Optional[Value]) -> Dict[str, Any]:
        """What a fault would affect if it began now: places, pairs of hubs, routes, trees, jobs.

        Changes nothing. The keywords are those of ``create_fault``.
        """
        message = faults.message_of(id, None, {"kind": kind, "link": link, "to": to, "in": in_,
                                               "link_class": link_class, **fields})
        preview = self.call("PreviewFault", control_pb2.PreviewFaultRequest(fault=message),
                            control_pb2.PreviewFaultReply).preview
        return {field.name: list(getattr(preview, field.name))
                if field.label == field.LABEL_REPEATED else getattr(preview, field.name)
                for field in preview.DESCRIPTOR.fields}

    def get_fault(self, id: str) -> faults.Fault:
        """A fault by its name, created here or elsewhere. NotFoundError."""
        self.call("ListFaults", control_pb2.ListFaultsRequest(id=id), control_pb2.ListFaultsReply)
        return faults.Fault(self, id)

    def faults(self) -> pd.DataFrame:
        """All faults: phase, places, times in ps, response of network management, cost."""
        reply = self.call("ListFaults", control_pb2.ListFaultsRequest(),
                          control_pb2.ListFaultsReply)
        return tables.faults_frame(reply.faults)

    def reset_faults(self) -> int:
        """Deletes all faults; returns how many."""
        return self.call("ResetFaults", control_pb2.ResetFaultsRequest(),
                         control_pb2.ResetFaultsReply).deleted

    # --- Single commands. They return the virtual time in ps at which they take effect.

    def _link(self, link: str, up: bool, at: Optional[Time]) -> int:
        request = control_pb2.InjectLinkFaultRequest(link=link, up=up)
        if at is not None:
            request.at = _fields.time_ps("at", at)
        return self.call("InjectLinkFault", request, control_pb2.InjectLinkFaultReply).at

    def link_down(self, link: str, at: Optional[Time] = None) -> int:
        """Takes a link down, in both directions: ``sn0-d0-h0:LR0`` or ``sn0-d0-h0/sn0-d1-h0``."""
        return self._link(link, False, at)

    def link_up(self, link: str, at: Optional[Time] = None) -> int:
        """Brings a link up."""
        return self._link(link, True, at)

    def _inject(self, fault: scenario_pb2.Fault, at: Optional[Time]) -> int:
        if at is not None:
            fault.at = _fields.time_ps("at", at)
        request = control_pb2.InjectFaultRequest(fault=fault, now=at is None)
        return self.call("InjectFault", request, control_pb2.InjectFaultReply).at

    def link_errors(self, link: str, *, flit_rate: Optional[float] = None,
                    bit_rate: Optional[float] = None, corrupt_next: Optional[int] = None,
                    from_: Optional[str] = None, at: Optional[Time] = None) -> int:
        """Corrupts flits of a link, which replays them; exactly one of the three.

        ``flit_rate``: probability for a flit (0 ends it); ``bit_rate``: for each of its 1024 bits;
        ``corrupt_next``: number of transmissions. ``from_``: only what this end sends.
        """
        given = {"flit_error_rate": flit_rate, "bit_error_rate": bit_rate,
                 "corrupt_next": corrupt_next}
        if sum(value is not None for value in given.values()) != 1:
            raise errors.FieldError("flit_rate", flit_rate, "exactly one kind of error is needed",
                                    "give flit_rate, bit_rate or corrupt_next")
        fault = scenario_pb2.Fault()
        values: Dict[str, Optional[Value]] = {"link": link, "from": from_, **given}
        _fields.set_fields(fault.link_errors, values)
        return self._inject(fault, at)

    def lanes(self, link: str, lost: int, *, from_: Optional[str] = None,
              at: Optional[Time] = None) -> int:
        """Takes ``lost`` lanes of a link down, spares included; 0 repairs it."""
        fault = scenario_pb2.Fault()
        _fields.set_fields(fault.lanes_lost, {"link": link, "from": from_, "count": lost})
        return self._inject(fault, at)

    def spe_down(self, place: str, at: Optional[Time] = None) -> int:
        """Takes an SPE of a blade down: ``blade0:SPE3``."""
        return self._inject(scenario_pb2.Fault(spe_down=place), at)

    def eib_ring_lost(self, place: str, at: Optional[Time] = None) -> int:
        """Takes a data ring of a blade's bus down: ``blade0:CELL1:RING2``."""
        return self._inject(scenario_pb2.Fault(eib_ring_lost=place), at)

    def chip_link_degraded(self, place: str, share: float = 0.5,
                           at: Optional[Time] = None) -> int:
        """Slows the link between the Cells of a blade down to ``share`` of its rate."""
        fault = scenario_pb2.Fault()
        _fields.set_fields(fault.chip_link_degraded, {"blade": place, "share": share})
        return self._inject(fault, at)
