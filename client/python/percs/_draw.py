"""The topology with the load of its links, as SVG for notebooks."""

from __future__ import annotations

import html
import math
import re
from typing import Dict, List, Tuple

import pandas as pd

Rows = List[Tuple[str, str, float, bool]]  # ends, load, up

_HUBS_DRAWN = 128  # more are a matrix of drawers
_RAMP = ((0.0, (205, 213, 222)), (0.3, (66, 133, 196)), (0.65, (246, 190, 65)),
         (1.0, (214, 84, 28)))
_DOWN = "#c80000"
_FONT = "font-family='sans-serif' font-size='11' fill='#222'"


def colour(share: float) -> str:
    """Of a load between 0 and 1."""
    share = min(max(share, 0.0), 1.0)
    for (low, first), (high, last) in zip(_RAMP, _RAMP[1:]):
        if share <= high:
            part = (share - low) / (high - low)
            red, green, blue = (round(a + (b - a) * part) for a, b in zip(first, last))
            return f"#{red:02x}{green:02x}{blue:02x}"
    return _DOWN


def _group(hub: str) -> str:
    """The drawer of a hub; what is in no drawer is a group by its letters."""
    match = re.match(r"(sn\d+-d\d+)-h\d+$", hub)
    return match[1] if match else re.sub(r"\d+.*", "", hub) + "s"


def natural(name: str) -> List[object]:
    """A key that sorts sn0-d10 behind sn0-d9."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def _legend(x: float, y: float, most: float, down: int) -> str:
    steps = "".join(f"<rect x='{x + 12 * i:.0f}' y='{y:.0f}' width='12' height='10' "
                    f"fill='{colour(i / 9)}'/>" for i in range(10))
    text = f"load 0 to {most:.1%}" + (f"; {down} down" if down else "")
    return f"{steps}<text x='{x + 128:.0f}' y='{y + 9:.0f}' {_FONT}>{text}</text>"


def _wrap(width: float, height: float, body: List[str]) -> str:
    return (f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width:.0f} {height:.0f}' "
            f"width='{width:.0f}' height='{height:.0f}'>"
            f"<rect width='100%' height='100%' fill='white'/>{''.join(body)}</svg>")


def svg(links: pd.DataFrame) -> str:
    """Drawers as clusters of hubs; links in the colour of their load, those down in red.

    ``links`` is what ``Fabric.links()`` gives. More than 128 hubs become a matrix of drawers.
    """
    rows: Rows = []
    for ends, forward, backward, up in zip(links["ends"], links["load_forward"],
                                           links["load_backward"], links["up"]):
        one, other = ends.split("/")
        rows.append((one, other, max(forward, backward), bool(up)))
    hubs = sorted({hub for one, other, _, _ in rows for hub in (one, other)}, key=natural)
    most = max((load for _, _, load, _ in rows), default=0.0)
    if len(hubs) > _HUBS_DRAWN:
        return _matrix(rows, hubs, most)
    return _clusters(rows, hubs, most)


def _clusters(rows: Rows, hubs: List[str], most: float) -> str:
    groups: Dict[str, List[str]] = {}
    for hub in hubs:
        groups.setdefault(_group(hub), []).append(hub)
    largest = max((len(members) for members in groups.values()), default=1)
    radius = max(34.0, 9.0 * largest)
    cell = 2 * radius + 70
    columns = max(1, math.ceil(math.sqrt(len(groups))))
    places: Dict[str, Tuple[float, float]] = {}
    boxes: List[str] = []
    for number, (group, members) in enumerate(groups.items()):
        x, y = (number % columns + 0.5) * cell, (number // columns + 0.5) * cell
        boxes.append(f"<rect x='{x - cell / 2 + 8:.0f}' y='{y - cell / 2 + 8:.0f}' "
                     f"width='{cell - 16:.0f}' height='{cell - 16:.0f}' rx='10' fill='#f6f8fa' "
                     f"stroke='#c9d1d9'/><text x='{x - cell / 2 + 16:.0f}' "
                     f"y='{y - cell / 2 + 24:.0f}' {_FONT}>{html.escape(group)}</text>")
        for i, hub in enumerate(members):
            turn = 2 * math.pi * i / len(members) - math.pi / 2
            places[hub] = (x + radius * math.cos(turn), y + radius * math.sin(turn) + 6)
    lines = []
    for one, other, load, up in sorted(rows, key=lambda row: (not row[3], row[2])):
        (x1, y1), (x2, y2) = places[one], places[other]
        share = load / most if most else 0.0
        look = (f"stroke='{colour(share)}' stroke-width='{0.6 + 1.8 * share:.1f}'" if up else
                f"stroke='{_DOWN}' stroke-width='2.5' stroke-dasharray='6 3'")
        state = f"{load:.1%}" if up else "down"
        lines.append(f"<line x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}' {look}>"
                     f"<title>{html.escape(one)}/{html.escape(other)}: {state}</title></line>")
    dots = [f"<circle cx='{x:.1f}' cy='{y:.1f}' r='6' fill='#24292f'>"
            f"<title>{html.escape(hub)}</title></circle>" for hub, (x, y) in places.items()]
    height = math.ceil(len(groups) / columns) * cell
    legend = _legend(12, height + 8, most, sum(not up for *_, up in rows))
    return _wrap(max(columns * cell, 260), height + 30, [*boxes, *lines, *dots, legend])


def _matrix(rows: Rows, hubs: List[str], most: float) -> str:
    groups = list(dict.fromkeys(_group(hub) for hub in hubs))
    if len(groups) > _HUBS_DRAWN:  # of supernodes then
        names = {group: group.split("-")[0] for group in groups}
    else:
        names = {group: group for group in groups}
    axis = list(dict.fromkeys(names.values()))
    index = {name: i for i, name in enumerate(axis)}
    loads: Dict[Tuple[int, int], float] = {}
    broken = set()
    for one, other, load, up in rows:
        pair = (index[names[_group(one)]], index[names[_group(other)]])
        pair = (min(pair), max(pair))
        loads[pair] = max(loads.get(pair, 0.0), load)
        if not up:
            broken.add(pair)
    size = max(2.0, min(14.0, 700.0 / len(axis)))
    left, body = 70.0, []
    for (row, column), load in loads.items():
        fill = _DOWN if (row, column) in broken else colour(load / most if most else 0.0)
        for a, b in {(row, column), (column, row)}:
            body.append(f"<rect x='{left + a * size:.1f}' y='{20 + b * size:.1f}' "
                        f"width='{size:.1f}' height='{size:.1f}' fill='{fill}'><title>"
                        f"{html.escape(axis[row])}, {html.escape(axis[column])}: {load:.1%}"
                        f"</title></rect>")
    every = max(1, math.ceil(14.0 / size))
    for i in range(0, len(axis), every):
        body.append(f"<text x='4' y='{20 + i * size + 9:.0f}' {_FONT}>{html.escape(axis[i])}"
                    "</text>")
    height = 20 + len(axis) * size
    body.append(_legend(left, height + 8, most, sum(not up for *_, up in rows)))
    return _wrap(left + len(axis) * size + 20, height + 30, body)
