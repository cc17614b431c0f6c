"""What shows itself as names with values, at a prompt and in a notebook."""

from __future__ import annotations

import html
from typing import Iterable, List, Sequence


class Shown:
    """Of a class whose ``_lines`` are the names and values to show."""

    def _lines(self) -> List[List[str]]:
        raise NotImplementedError

    def __repr__(self) -> str:
        return "\n".join(f"{name:<25} {value}" for name, value in self._lines())

    def _repr_html_(self) -> str:
        return table(self._lines())


def table(lines: Iterable[Sequence[str]]) -> str:
    """As HTML."""
    return "<table>" + "".join(
        f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
        f"<td style='text-align:left'>{html.escape(value)}</td></tr>"
        for name, value in lines) + "</table>"
