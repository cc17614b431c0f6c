"""Replies of a controller as DataFrames. Times are virtual, in ps unless a column says ns."""

from __future__ import annotations

import functools
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence

import numpy as np
import pandas as pd
from google.protobuf.message import Message

from percs import _fields, _program
from percs.result import table
from percs.v1 import common_pb2, control_pb2, fault_pb2

NAN = float("nan")
_CLASSES = [("LL", 0, 7), ("LR", 7, 24), ("D", 31, 16), ("HFI", 47, 8)]
_SERVICE_PORT = 55


@functools.lru_cache(maxsize=None)
def _listed() -> List[Dict[str, Any]]:
    rows: List[Dict[str, Any]] = _program.run_json("counters", "--list")
    return rows


def counter_list() -> pd.DataFrame:
    """Every counter of a hub: unit, meaning, metric and the model version that introduced it."""
    return pd.DataFrame(_listed()).set_index("name")[["unit", "meaning", "metric", "since_model"]]


@functools.lru_cache(maxsize=None)
def _names() -> Dict[str, str]:
    """The name of a counter in reports, by its place in messages."""
    return {row["field"]: row["name"] for row in _listed() if row["field"]}


def _histogram(histogram: common_pb2.Histogram) -> List[float]:
    """Mean, p50, p99 and max in ns; NaN without samples."""
    count = histogram.count
    if count == 0:
        return [NAN] * 4
    buckets = np.array(histogram.buckets, dtype=np.uint64)
    seen = np.cumsum(buckets)
    quantiles = []
    for q in (0.5, 0.99):
        rank = max(int(np.ceil(q * count)), 1)
        bucket = int(np.searchsorted(seen, rank))
        upper = bucket if bucket < 8 else ((bucket % 8 + 9) << (bucket // 8 - 1)) - 1
        quantiles.append(min(upper, histogram.max) / 1000)
    return [histogram.sum / count / 1000, *quantiles, histogram.max / 1000]


class _Columns:
    """Columns of counters that are made when one of them is not zero."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.values: Dict[str, "np.ndarray[Any, Any]"] = {}

    def add(self, row: int, name: str, value: int) -> None:
        column = self.values.get(name)
        if column is None:
            column = self.values[name] = np.zeros(self.rows, dtype=np.int64)
        column[row] = value

    def read(self, row: int, message: Message, before: str = "") -> None:
        """Every integer of a message but those of ports, by the name of its place."""
        for field, value in message.ListFields():
            name = before + field.name
            if isinstance(value, int):
                self.add(row, name, value)
            elif field.name == "counts":
                for key, one in value.items():
                    self.add(row, before + key, one)
            elif isinstance(value, Mapping):
                for key, one in value.items():
                    self.add(row, f"{name}.{key}", one)
            elif field.name == "ports" or isinstance(value, common_pb2.Histogram):
                continue
            elif field.label == field.LABEL_REPEATED:
                for index, one in enumerate(value):
                    self.read(row, one, f"{name}.{index}.")
            else:
                self.read(row, value, name + ".")


def counters_frame(reply: control_pb2.GetCountersReply, nonzero: bool) -> pd.DataFrame:
    """A row per hub: the columns are the counters, and latencies in ns (NaN without samples)."""
    nodes = reply.nodes
    columns = _Columns(len(nodes))
    latencies = np.empty((len(nodes), 8))
    for row, node in enumerate(nodes):
        columns.read(row, node.counters)
        latencies[row, :4] = _histogram(node.counters.packet_latency)
        latencies[row, 4:] = _histogram(node.counters.message_latency)
    created = columns.values.get("packets_created")
    if created is not None:  # messages do not have hw_direct, which is the rest
        others = [values for place, values in columns.values.items()
                  if place.startswith("packets_by_mode.")]
        columns.values["packets_by_mode.hw_direct"] = created - sum(others)
    names = _names()
    zeros = np.zeros(len(nodes), dtype=np.int64)
    data = {name: columns.values.get(place, zeros) for place, name in names.items()
            if not nonzero or place in columns.values}
    frame = pd.DataFrame(data, index=pd.Index([node.node or "all nodes" for node in nodes],
                                              name="hub"))
    for column, name in enumerate(f"latency_ns.{of}.{q}" for of in ("packet", "message")
                                  for q in ("mean", "p50", "p99", "max")):
        if not nonzero or not np.isnan(latencies[:, column]).all():
            frame[name] = latencies[:, column]
    units = {row["name"]: row["unit"] for row in _listed()}
    frame.attrs["units"] = {name: units.get(name, "ns") for name in frame.columns}
    frame.attrs["virtual_ps"] = reply.virtual_time
    return frame


def port_name(port: int) -> str:
    """LL0 to LL6, LR0 to LR23, D0 to D15, HFI0 to HFI7, service."""
    for name, first, count in _CLASSES:
        if first <= port < first + count:
            return f"{name}{port - first}"
    return "service" if port == _SERVICE_PORT else f"port{port}"


def _of_vc(vc: common_pb2.VcCounters) -> Dict[str, int]:
    row = {field.name: int(getattr(vc, field.name)) for field in vc.DESCRIPTOR.fields
           if field.name not in ("vc", "counts")}
    row.update(vc.counts)
    return row


def vcs_frame(counters: common_pb2.Counters) -> pd.DataFrame:
    """A row per port and virtual channel of a hub that did something."""
    rows: List[Dict[str, Any]] = []
    for port in counters.ports:
        for vc in port.vcs:
            rows.append({"port": port_name(port.port), "vc": str(vc.vc), **_of_vc(vc)})
        if port.service_flits:
            rows.append({"port": port_name(port.port), "vc": "S", "flits": port.service_flits,
                         "packets": port.service_flits})
    frame = pd.DataFrame(rows, columns=None if rows else ["port", "vc", "flits", "packets"])
    return frame.set_index(["port", "vc"]).fillna(0).astype("int64")


_DIRECTION = ("flits", "packets", "bytes", "credit_stall_ps", "crc_errors", "replays", "lanes_lost")


def links_frame(reply: control_pb2.ListLinksReply, down: bool) -> pd.DataFrame:
    """A row per link. ``forward`` is sent by the end that names the link, ``backward`` to it.

    ``load_forward`` and ``load_backward`` are shares of virtual time so far.
    """
    rows = []
    for link in reply.links:
        if down and link.up:
            continue
        row: Dict[str, Any] = {"link": link.name, "ends": link.ends, "class": link.link_class,
                               "up": link.up, "load_forward": link.utilisation_forward,
                               "load_backward": link.utilisation_backward}
        for way, port in (("forward", link.forward), ("backward", link.backward)):
            row.update({f"{name}_{way}": int(getattr(port, name)) for name in _DIRECTION})
        rows.append(row)
    columns = ["link", "ends", "class", "up", "load_forward", "load_backward"]
    frame = pd.DataFrame(rows, columns=columns if not rows else None).set_index("link")
    frame.attrs["virtual_ps"] = reply.virtual_time
    return frame


def optional(message: Message, name: str) -> float:
    """A number that may be absent, which is NaN."""
    return float(getattr(message, name)) if message.HasField(name) else NAN


_FAULT_TIMES = ("injected_at", "recovered_at", "next_at", "detected_at", "alerted_at", "planned_at",
                "committed_at", "first_packet_at")


def fault_row(fault: fault_pb2.FaultStatus) -> Dict[str, Any]:
    """A fault: phase, places, times in ps, response, cost; NaN: not (yet)."""
    row: Dict[str, Any] = {"id": fault.id, "number": fault.number, "kind": fault.kind,
                           "phase": fault.phase, "seed": fault.seed, "selected": fault.selected,
                           "targets": list(fault.targets), "selected_at_ps": fault.selected_at,
                           "begins_at_ps": fault.begins_at, "injections": fault.injections,
                           "recoveries": fault.recoveries}
    row.update({f"{name}_ps": optional(fault, name) for name in _FAULT_TIMES})
    row.update({name: optional(fault, name) for name in ("epoch", "packets_lost", "packets_resent",
                                                         "replays")})
    return row


def faults_frame(faults: Iterable[fault_pb2.FaultStatus]) -> pd.DataFrame:
    """A row per fault."""
    empty = list(fault_row(fault_pb2.FaultStatus()))
    return pd.DataFrame([fault_row(fault) for fault in faults], columns=empty).set_index("id")


def reroutes_frame(reroutes: Iterable[common_pb2.Reroute]) -> pd.DataFrame:
    """A row per reroute: what it is about, and when each of its steps ended, in ps."""
    columns = ["epoch", "down", "up", "damaged", "raised_ps", "alerted_ps", "planning_started_ps",
               "planned_ps", "committed_ps", "first_packet_ps", "hubs_changed",
               "unreachable_pairs"]
    rows = [[r.epoch, list(r.down), list(r.up), list(r.damaged), r.raised, r.alerted,
             r.planning_started, r.planned, r.committed, optional(r, "first_packet"),
             r.hubs_changed, r.unreachable_pairs] for r in reroutes]
    return pd.DataFrame(rows, columns=columns)


def trees_frame(trees: Iterable[common_pb2.TreeStatus]) -> pd.DataFrame:
    """A row per tree of CAUs; ``vertices`` where they were asked for."""
    rows = [{"name": tree.name, "id": tree.id, "state": tree.state, "generation": tree.generation,
             "participants": tree.participants, "indexes": tree.indexes, "depth": tree.depth,
             "problem": tree.problem, "since_ps": tree.since, "repairs": len(tree.repairs),
             "vertices": [(v.node, v.parent if v.HasField("parent") else None, v.participant)
                          for v in tree.vertices]} for tree in trees]
    columns = ["name", "id", "state", "generation", "participants", "indexes", "depth", "problem",
               "since_ps", "repairs", "vertices"]
    return pd.DataFrame(rows, columns=columns).set_index("name")


def traced_frame(packets: Sequence[Dict[str, Any]]) -> pd.DataFrame:
    """A row per hop of every packet that percsctl followed: times in ps, what it waited for."""
    rows: List[Dict[str, Any]] = []
    for number, p in enumerate(packets):
        base = {"packet": number, "source": p["source"], "destination": p["destination"],
                "bytes": p["bytes"], "mode": p["mode"], "created_ps": p["created_ps"],
                "delivered_ps": p["deliveries"][0]["at_ps"] if p["deliveries"] else None,
                "dropped": p["drops"][0]["reason"] if p["drops"] else ""}
        for place, hop in enumerate(p["hops"]):
            grants = hop["grants"]
            waited: Dict[str, int] = {}
            for grant in grants:
                for reason, time in grant["waited_ps"].items():
                    waited[reason] = waited.get(reason, 0) + time
            rows.append({**base, "hop": place, "hub": hop["node"], "in": hop["in"],
                         "out": hop["out"], "in_vc": hop["in_vc"], "out_vc": hop["out_vc"],
                         "arrived_ps": hop["arrived_ps"],
                         "sent_ps": grants[0]["at_ps"] if grants else None,
                         "left_ps": grants[-1]["until_ps"] if grants else None,
                         "waited_ps": waited})
    return table(rows, ("packet", "hop", "hub", "in", "out")).set_index(["packet", "hop"])


def state_name(state: int) -> str:
    """joining, empty, configuring, running, idle, finished, failed or paused."""
    return _fields.choice_name(control_pb2.DESCRIPTOR.enum_types_by_name["FabricState"], state)


def processes_frame(reply: control_pb2.StatusReply) -> pd.DataFrame:
    """A row per daemon."""
    rows = [{"daemon": p.name, "process": p.process, "pid": p.pid, "address": p.link_address,
             "connected": p.connected, "first_node": p.first_node, "nodes": p.nodes,
             "blades": p.blades, "crossbars": p.crossbars, "reconnects": p.reconnects,
             "windows": p.windows, "wall_missing_seconds": p.wall_missing_seconds,
             "wall_lost_in_seconds": optional(p, "wall_lost_in_seconds"),
             "metrics": p.metrics_address} for p in reply.processes]
    columns: Optional[List[str]] = None if rows else ["daemon", "process", "pid", "connected"]
    return pd.DataFrame(rows, columns=columns).set_index("daemon")
