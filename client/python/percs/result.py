"""The report of a run: what percsctl prints as JSON (docs/cli.md), with tables and units."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Dict, List, Sequence

import pandas as pd

from percs._shown import Shown

NAN = math.nan


@dataclasses.dataclass(frozen=True)
class Latency:
    """Of packets or messages, in virtual nanoseconds; NaN where there is no sample.

    There is none if nothing arrived, or if the network was saturated: then latencies only depend on
    the length of the measurement. Quantiles are right within 12.5 %.
    """

    count: int
    mean: float
    p50: float
    p99: float
    max: float


def number(value: Any) -> float:
    """NaN for what JSON has as null."""
    return NAN if value is None else float(value)


def table(rows: Sequence[Dict[str, Any]], columns: Sequence[str] = ()) -> pd.DataFrame:
    """Rows as a DataFrame. null is NaN in columns of numbers, and never 0."""
    frame = pd.DataFrame(list(rows), columns=list(columns) if not rows and columns else None)
    for name in frame.columns:
        values = frame[name]
        if values.dtype == object and values.map(
                lambda v: v is None or isinstance(v, (int, float)) and not isinstance(v, bool)
        ).all():
            frame[name] = values.astype(float)
    return frame


def _flatten(value: Any, before: str = "") -> Dict[str, Any]:
    if isinstance(value, list):
        value = {str(place): inner for place, inner in enumerate(value)}
    if not isinstance(value, dict):
        return {before: value}
    flat: Dict[str, Any] = {}
    for name, inner in value.items():
        flat.update(_flatten(inner, f"{before}.{name}" if before else name))
    return flat


class Result(Shown):
    """The result of a run. ``raw`` is the whole report, by the names of docs/cli.md."""

    def __init__(self, raw: Dict[str, Any]) -> None:
        self.raw = raw

    @property
    def scenario(self) -> str:
        """Name of the scenario."""
        return str(self.raw["scenario"])

    @property
    def digest(self) -> str:
        """32 hexadecimal digits; equal for equal results, wherever the hubs ran."""
        return str(self.raw["digest"])

    @property
    def virtual_seconds(self) -> float:
        """End of the run in virtual time."""
        return float(self.raw["virtual_seconds"])

    @property
    def wall_seconds(self) -> float:
        """Duration on this host."""
        return float(self.raw["wall_seconds"])

    @property
    def nodes(self) -> int:
        """Hubs, blades and crossbars."""
        return int(self.raw["nodes"])

    def _latency(self, of: str) -> Latency:
        raw = self.raw["latency_ns"][of]
        return Latency(int(raw["count"]), *(number(raw[q]) for q in ("mean", "p50", "p99", "max")))

    @property
    def latency(self) -> Latency:
        """Of packets, in ns, from the HFI of the source to that of the destination."""
        return self._latency("packet")

    @property
    def message_latency(self) -> Latency:
        """Of messages of the message layer, in ns."""
        return self._latency("message")

    @property
    def _measured(self) -> Dict[str, Any]:
        measured: Dict[str, Any] = self.raw["measured"]
        return measured

    @property
    def saturated(self) -> bool:
        """Whether the network accepted less than was offered in the measurement phase.

        False for workloads without such a phase.
        """
        return bool(self._measured.get("saturated", False))

    @property
    def offered(self) -> float:
        """Bytes per second that a sending hub offered; NaN without a measurement phase."""
        return number(self._measured.get("offered_bytes_per_second_per_hub"))

    @property
    def accepted(self) -> float:
        """Bytes per second of a sending hub that arrived; NaN without a measurement phase."""
        return number(self._measured.get("accepted_bytes_per_second_per_hub"))

    @property
    def undelivered(self) -> float:
        """Packets created in the measurement phase that had not arrived when its drain ended.

        NaN for workloads without a drain.
        """
        return number(self._measured.get("packets_undelivered"))

    @property
    def steady(self) -> bool:
        """Whether the latency has no trend over the measurement phase.

        By a t test at 1 % of the batch means of its two halves. False without such a phase.
        """
        return bool(self._measured.get("steady", False))

    @property
    def unstable(self) -> bool:
        """Whether ``auto_warm_up`` found no steady part of the measurement phase."""
        return bool(self._measured.get("unstable", False))

    @property
    def warm_up(self) -> float:
        """Virtual ps from the start of the run that ``auto_warm_up`` left out; else NaN."""
        return number(self._measured.get("warm_up_ps"))

    @property
    def latency_by_path(self) -> pd.DataFrame:
        """Packets of the measurement phase by class of path and number of links.

        Mean and max in ns; NaN if the network was saturated or unstable.
        """
        columns = ["class", "hops", "packets", "mean_ns", "max_ns"]
        frame = pd.DataFrame(self._measured.get("latency_by_path", []), columns=columns)
        frame = frame.astype({"hops": int, "packets": int, "mean_ns": float, "max_ns": float})
        return frame.set_index(["class", "hops"])

    @property
    def source_fairness(self) -> float:
        """Jain's index of what sending hubs injected, 1/n to 1; NaN if nothing was measured."""
        return number(self._measured.get("source_fairness"))

    @property
    def least_injected(self) -> float:
        """Bytes per second of the hub that injected least; NaN if nothing was measured."""
        return number(self._measured.get("least_injected_bytes_per_second_per_hub"))

    @property
    def latency_half_width(self) -> float:
        """Half the 95 % confidence interval of the mean packet latency, in ns.

        By ten batch means. NaN without a measurement phase, if the network was saturated, or if a
        tenth of the phase has no packet.
        """
        return number(self._measured.get("latency_half_width_ns"))

    @property
    def fairness(self) -> float:
        """Jain's index of what receiving hubs accepted, 1/n to 1; NaN if nothing was measured."""
        return number(self._measured.get("fairness"))

    @property
    def least_accepted(self) -> float:
        """Bytes per second of the hub that accepted least; NaN if nothing was measured."""
        return number(self._measured.get("least_accepted_bytes_per_second_per_hub"))

    @property
    def hops_mean(self) -> float:
        """LL, LR and D links per packet; NaN if no packet arrived."""
        return float(self.raw["hops_mean"]) if self.raw["packets_delivered"] else NAN

    @property
    def violations(self) -> List[str]:
        """What the checkers found; empty in a correct run."""
        return list(self.raw["violations"])

    @property
    def counters(self) -> "pd.Series[Any]":
        """Sums over all hubs, by the names of ``percs.counter_list()``."""
        from percs.tables import counter_list  # which makes its tables with this module
        flat = _flatten({name: value for name, value in self.raw.items()
                         if name not in ("ports", "link_utilisation")})
        known = [name for name in counter_list().index if name in flat]
        return pd.Series({name: flat[name] for name in known}, dtype="int64", name="all hubs")

    @property
    def drops(self) -> "pd.Series[Any]":
        """Packets dropped, by reason."""
        return pd.Series(_flatten(self.raw["drops"]), dtype="int64", name="packets")

    @property
    def link_utilisation(self) -> pd.DataFrame:
        """By class of links: mean and max over links as a share of the run, number of links.

        NaN for a class without links.
        """
        frame = pd.DataFrame(self.raw["link_utilisation"]).T
        frame = frame.astype({"mean": float, "max": float}).astype({"links": int})
        frame.loc[frame["links"] == 0, ["mean", "max"]] = NAN
        frame.index.name = "class"
        return frame[["links", "mean", "max"]]

    @property
    def ports(self) -> pd.DataFrame:
        """Flits, packets, bytes, stalls and replays, by class of links."""
        frame = pd.DataFrame(self.raw["ports"]).T
        frame.index.name = "class"
        return frame

    def _rows(self, name: str, *columns: str) -> pd.DataFrame:
        return table(self.raw.get(name) or [], columns)

    @property
    def reroutes(self) -> pd.DataFrame:
        """One row per epoch of route tables: links, and times in ns."""
        return self._rows("reroutes", "epoch", "down", "up")

    @property
    def faults(self) -> pd.DataFrame:
        """Of each fault its phase, times in ps, and its cost."""
        return self._rows("faults", "id", "kind", "phase")

    @property
    def trees(self) -> pd.DataFrame:
        """Trees of CAUs."""
        return self._rows("trees", "name", "state")

    @property
    def ranks(self) -> pd.DataFrame:
        """Of a trace: finished, calc, overhead and waiting of each rank, in ns."""
        return self._rows("ranks", "rank")

    @property
    def programs(self) -> pd.DataFrame:
        """Programs of Cell blades."""
        return self._rows("programs", "blade", "program")

    @property
    def window_programs(self) -> pd.DataFrame:
        """Programs at windows, of the workload ``windows``."""
        return self._rows("window_programs", "name", "hub")

    @property
    def cau_tasks(self) -> pd.DataFrame:
        """Participants of the workload ``cau``."""
        return self._rows("cau_tasks", "hub", "tree")

    @property
    def failed_messages(self) -> pd.DataFrame:
        """Messages that were given up: ends, reason, time in ns."""
        return self._rows("failed_messages", "source", "destination", "reason", "at_ns")

    @property
    def events(self) -> pd.DataFrame:
        """Faults, alerts, reroutes, trees, of a run with ``events=True``; times in ps."""
        return self._rows("events", "sequence", "at_ps", "kind", "subject", "text")

    def _lines(self) -> List[List[str]]:
        def of(latency: Latency) -> str:
            if math.isnan(latency.mean):
                return "no sample: the network is saturated" if self.saturated else "no sample"
            return (f"mean {latency.mean:,.0f} ns, p50 {latency.p50:,.0f}, p99 {latency.p99:,.0f}, "
                    f"max {latency.max:,.0f}")
        lines = [["scenario", self.scenario], ["digest", self.digest],
                 ["virtual time", f"{self.virtual_seconds * 1e6:,.3f} us"],
                 ["packets delivered", f"{self.raw['packets_delivered']:,}"],
                 ["packet latency (virtual)", of(self.latency)]]
        if not math.isnan(self.offered):
            lines.append(["offered, accepted",
                          f"{self.offered / 1e9:.2f}, {self.accepted / 1e9:.2f} GB/s per hub"])
        if self.violations:
            lines.append(["violations", "; ".join(self.violations)])
        return lines
