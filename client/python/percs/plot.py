"""Plots of the results of other calls. Each returns the Axes that it drew on.

Needs matplotlib, which is imported with the first plot.
"""

from __future__ import annotations

import re
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np
import pandas as pd

from percs import errors

Axes = Any  # matplotlib.axes.Axes

_MARKERS = "osD^vP*X"


def _axes(ax: Optional[Axes]) -> Axes:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt
    return plt.subplots(figsize=(7, 4.5), layout="constrained")[1]


def _style(number: int) -> Dict[str, Any]:
    """Of the curve of this number. One that later ones cover is wider, so that it still shows."""
    wider = max(0, 2 - number)
    return {"marker": _MARKERS[number % len(_MARKERS)], "markersize": 4 + 2 * wider,
            "linewidth": 1.5 + 0.9 * wider}


def column(frame: pd.DataFrame, name: str) -> str:
    """The column of this name, or the one whose path or words end with it: ``mode``, ``load``.

    FieldError if there is none, or more than one.
    """
    if name in frame.columns:
        return name
    found = [str(c) for c in frame.columns if re.search(rf"(?:^|[._ ]){re.escape(name)}$", str(c))]
    if len(found) == 1:
        return found[0]
    raise errors.FieldError("column", name, f"{len(found) or 'no'} columns end with it",
                            "columns: " + ", ".join(map(str, frame.columns)))


def _groups(frame: pd.DataFrame, hue: Optional[str]) -> List[Tuple[str, pd.DataFrame]]:
    if hue is None:
        return [("", frame)]
    return [(str(name), group) for name, group in frame.groupby(column(frame, hue), sort=False)]


def _by_x(frame: pd.DataFrame, x: str, y: str) -> Tuple[Any, Any, Any, Any]:
    """x, and mean, least and most of y over repeats; NaN without any sample."""
    at = frame.groupby(x)[y]
    return at.mean().index.to_numpy(dtype=float), at.mean().to_numpy(dtype=float), \
        at.min().to_numpy(dtype=float), at.max().to_numpy(dtype=float)


def _natural(name: str) -> List[object]:
    """A key that sorts sn0-d10 behind sn0-d9."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def latency_load(frame: pd.DataFrame, hue: Optional[str] = None, *, x: str = "load",
                 y: str = "packet_latency_mean_ns", ax: Optional[Axes] = None) -> Axes:
    """Mean packet latency over the offered load, a curve per value of ``hue``.

    ``frame`` is a table of ``percs.sweep``; columns may be named by their last word. Bands are
    the range over seeds. Saturated points have no latency: a cross above the plot marks them.
    """
    ax = _axes(ax)
    across = column(frame, x)
    up = column(frame, y)
    saturated = frame[column(frame, "saturated")] == True  # noqa: E712: also of no value
    for number, (name, group) in enumerate(_groups(frame, hue)):
        where, mean, low, high = _by_x(group, across, up)
        line, = ax.plot(where, mean, label=name or None, **_style(number))
        ax.fill_between(where, low, high, color=line.get_color(), alpha=0.2, linewidth=0)
        full = group.loc[saturated[group.index], across].unique().astype(float)
        ax.plot(full, np.full(len(full), 1.02 + 0.03 * number), "x", color=line.get_color(),
                transform=ax.get_xaxis_transform(), clip_on=False,
                label="saturated" if len(full) and not name else None)
    ax.set_xlabel("offered load")
    ax.set_ylabel("mean packet latency (ns, virtual)")
    ax.set_ylim(bottom=0)
    ax.grid(alpha=0.3)
    _legend(ax, hue, "x: saturated" if saturated.any() else "")
    return ax


def _legend(ax: Axes, hue: Optional[str], note: str = "") -> None:
    if ax.get_legend_handles_labels()[1]:
        ax.legend(title="\n".join(part for part in (hue or "", note) if part) or None,
                  loc="upper left")


def accepted_load(frame: pd.DataFrame, hue: Optional[str] = None, *, x: str = "load",
                  ax: Optional[Axes] = None) -> Axes:
    """What the network accepted over the offered load, in GB/s per sending hub."""
    ax = _axes(ax)
    across = column(frame, x)
    up = column(frame, "accepted_GB_per_s_per_hub")
    for number, (name, group) in enumerate(_groups(frame, hue)):
        where, mean, low, high = _by_x(group, across, up)
        line, = ax.plot(where, mean, label=name or None, **_style(number))
        ax.fill_between(where, low, high, color=line.get_color(), alpha=0.2,
                        linewidth=0)
    ax.set_xlabel("offered load")
    ax.set_ylabel("accepted (GB/s per hub, virtual)")
    ax.set_ylim(bottom=0)
    ax.grid(alpha=0.3)
    _legend(ax, hue)
    return ax


def small_multiples(frame: pd.DataFrame, by: str, hue: Optional[str] = None, *,
                    x: str = "load") -> Any:
    """``latency_load`` once per value of ``by``, side by side with the same axes. The Figure."""
    import matplotlib.pyplot as plt
    groups = _groups(frame, by)
    columns = min(3, len(groups))
    rows = -(-len(groups) // columns)
    figure, grid = plt.subplots(rows, columns, figsize=(4.2 * columns, 3.4 * rows), sharex=True,
                                sharey=True, squeeze=False, layout="constrained")
    for ax, (name, group) in zip(grid.flat, groups):
        latency_load(group, hue, x=x, ax=ax)
        ax.set_title(f"{by} {name}", pad=24)  # above the crosses
    for ax in list(grid.flat)[len(groups):]:
        ax.set_visible(False)
    for ax in grid.flat:
        ax.label_outer()
    return figure


def link_load(links: pd.DataFrame, *, ax: Optional[Axes] = None) -> Axes:
    """The load of every link, both ways, in falling order, by class. From ``Fabric.links()``."""
    ax = _axes(ax)
    for name, group in links.groupby("class", sort=False):
        loads = np.sort(np.concatenate([group["load_forward"], group["load_backward"]]))[::-1]
        ax.step(np.linspace(0, 1, len(loads)), loads, where="mid",
                label=f"{name}: {len(group)} links, {int((~group['up']).sum())} down")
    ax.set_xlabel("share of the links of a class, both ways")
    ax.set_ylabel("load (share of virtual time)")
    ax.set_ylim(bottom=0)
    ax.grid(alpha=0.3)
    ax.legend()
    return ax


def traffic_matrix(links: pd.DataFrame, *, ax: Optional[Axes] = None) -> Axes:
    """The load from each hub to each other one that it has a link to; red: the link is down."""
    import matplotlib.pyplot as plt
    ax = _axes(ax)
    pairs = [ends.split("/") for ends in links["ends"]]
    hubs = sorted({hub for pair in pairs for hub in pair}, key=_natural)
    index = {hub: i for i, hub in enumerate(hubs)}
    loads = np.full((len(hubs), len(hubs)), np.nan)
    down = []
    for (one, other), row in zip(pairs, links.itertuples()):
        a, b = index[one], index[other]
        loads[a, b] = np.fmax(loads[a, b], row.load_forward)  # of several links the fullest
        loads[b, a] = np.fmax(loads[b, a], row.load_backward)
        if not row.up:
            down += [(b, a), (a, b)]
    image = ax.imshow(loads, cmap="viridis", interpolation="nearest", vmin=0)
    plt.colorbar(image, ax=ax, label="load (share of virtual time)")
    if down:
        ax.plot(*zip(*down), "s", color="red", markersize=3, linestyle="none", label="link down")
        ax.legend(loc="lower right", bbox_to_anchor=(1, 1), frameon=False)
    every = max(1, len(hubs) // 16)
    ax.set_xticks(range(0, len(hubs), every), hubs[::every], rotation=90, fontsize=7)
    ax.set_yticks(range(0, len(hubs), every), hubs[::every], fontsize=7)
    ax.set_xlabel("to")
    ax.set_ylabel("from")
    return ax


def timeline(events: pd.DataFrame, *, ax: Optional[Axes] = None,
             kinds: Sequence[str] = ()) -> Axes:
    """Events over virtual time, a line per kind. From ``Fabric.events()`` or ``Result.events``."""
    ax = _axes(ax)
    shown = events[events["kind"].isin(list(kinds))] if kinds else events
    names = list(dict.fromkeys(shown["kind"]))
    for number, name in enumerate(names):
        group = shown[shown["kind"] == name]
        times = group["at_ps"].to_numpy(dtype=float) / 1e6
        ax.plot(times, np.full(len(times), number), "|", markersize=16, markeredgewidth=2)
        subject = group["subject"].iloc[0]
        ax.annotate(f"{subject}" + (f" and {len(group) - 1} more" if len(group) > 1 else ""),
                    (times[0], number), textcoords="offset points", xytext=(6, 6), fontsize=8)
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.set_xlabel("virtual time (us)")
    ax.margins(x=0.15)
    ax.grid(axis="x", alpha=0.3)
    return ax


def sizes(frame: pd.DataFrame, *, ax: Optional[Axes] = None, label: Optional[str] = None) -> Axes:
    """Time over message size, of ``percs.collective`` or ``percs.perf``, on logarithmic axes."""
    ax = _axes(ax)
    scales: Dict[str, float] = {"mean_ns": 1e3, "latency_ps": 1e6, "half_round_trip_ps": 1e6}
    name = next((c for c in scales if c in frame.columns), "")
    if not name:
        raise errors.FieldError("frame", list(frame.columns), "no column with a time",
                                "give a table of percs.collective or percs.perf")
    ax.plot(frame["bytes"], frame[name] / scales[name], marker="o", markersize=4, label=label)
    if "slowest_ns" in frame.columns:
        ax.fill_between(frame["bytes"], frame["fastest_ns"] / 1e3, frame["slowest_ns"] / 1e3,
                        alpha=0.2, linewidth=0)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xlabel("bytes")
    ax.set_ylabel("time (us, virtual)")
    ax.grid(alpha=0.3, which="both")
    if label:
        ax.legend()
    return ax
