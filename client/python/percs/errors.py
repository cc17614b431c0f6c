"""Errors as exceptions.

Every message says what is wrong, where, and what would be right; if a field of a scenario, a fault
or a call is wrong, the exception has it as ``field``, ``value`` and ``expected``.
"""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, List, Optional, Sequence

if TYPE_CHECKING:
    from percs.result import Result


class PercsError(Exception):
    """The base of all exceptions of this package.

    ``field``: what is to blame, if one thing is; ``value``: what it had; ``expected``: what would
    be right. Each is "" where that is not known.
    """

    field: str = ""
    value: object = ""
    expected: str = ""

    def __init__(self, message: str = "") -> None:
        super().__init__(message)
        if not self.expected:
            right = message.rpartition("; ")
            self.expected = right[2].strip() if right[1] else ""


@dataclasses.dataclass(frozen=True)
class Problem:
    """One thing that is wrong in a scenario."""

    message: str  # all of it, as percsctl prints it
    field: str = ""  # path, like ``workload.pattern.load``; "": of no single field
    value: str = ""  # as written; "": not known
    expected: str = ""  # what would be right; "": see the message
    file: str = ""
    line: int = 0  # from 1; 0: not of a file
    column: int = 0


class FieldError(PercsError, ValueError):
    """A value that a field, an option or an argument does not take.

    ``field`` is its name or path, ``value`` what was given, ``expected`` what would be right.
    """

    def __init__(self, field: str, value: object, why: str, expected: str) -> None:
        self.field = field
        self.value = value
        self.expected = expected
        PercsError.__init__(self, f"{field}: {why}" + (f"; {expected}" if expected else ""))


class ScenarioError(FieldError):
    """A scenario that cannot be run. ``problems`` has everything that was found wrong."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems: List[Problem] = list(problems)
        first = self.problems[0]
        self.field = first.field
        self.value = first.value
        self.expected = first.expected
        PercsError.__init__(self, "\n".join(problem.message for problem in self.problems))


class NotFoundError(PercsError, LookupError):
    """No hub, link, fault, tree, run, file or fabric has this name; ``expected``: the nearest."""

    def __init__(self, message: str = "") -> None:
        named = _NAMED.search(message)
        if named:
            self.field, self.value = named["what"], named["name"]
        super().__init__(message)


class UnreachableError(PercsError, ConnectionError):
    """No controller, or no percsd, answers."""


class RefusedError(PercsError, PermissionError):
    """The certificate is not accepted, or its role may not do this."""


class StateError(PercsError):
    """Not in this state of the fabric: no scenario is applied, the run has ended, ..."""


class ExistsError(PercsError):
    """There is one of this name already, or the window or address is taken."""


class ExhaustedError(PercsError):
    """A limit is reached: windows, slots of a FIFO, operations under way, the journal."""


class DeadlockError(PercsError):
    """The emulated fabric is deadlocked; the message contains the cycle."""


class ViolationError(PercsError):
    """A checker found a violation, payload bytes arrived wrong, or digests differ.

    ``result`` is the report of the run, if there is one.
    """

    def __init__(self, message: str, result: Optional["Result"] = None) -> None:
        self.result = result
        PercsError.__init__(self, message)


class CancelledError(PercsError):
    """Interrupted, or cancelled by the caller."""


class WaitError(PercsError, TimeoutError):
    """The timeout of the caller is over; the operation continues."""


_PLACE = re.compile(r"(?P<file>.+?):(?P<line>\d+):(?P<column>\d+): (?P<rest>.*)", re.S)
_PATH = re.compile(r"(?P<path>[a-z_][a-z0-9_]*(?:\[\d+\])?(?:\.[a-z_][a-z0-9_]*(?:\[\d+\])?)*): "
                   r"(?P<what>.*)", re.S)
_SETTING = re.compile(r"(?:[^\n]*?: )?--(?:set|over) (?P<path>[^=\s]+)=(?P<value>.*?): "
                      r"(?P<what>.*)", re.S)
_NAMED = re.compile(r'\bno (?P<what>[a-z ]+?) (?:is (?:named|called) )?"(?P<name>[^"]*)"')
_VALUE = re.compile(r'(?:found )?"(?P<quoted>[^"]*)"|(?P<bare>\S+) (?:is|needs) ')


def problem_of(line: str) -> Problem:
    """Splits a line that percsctl prints about a scenario into its parts."""
    setting = _SETTING.match(line)
    if setting:
        return Problem(line, setting["path"], setting["value"], _expected(setting["what"]))
    place = _PLACE.match(line)
    rest = place["rest"] if place else line
    path = _PATH.match(rest)
    named = _NAMED.search(rest)
    if named and not path:
        return Problem(line, named["what"], named["name"], _expected(rest))
    what = path["what"] if path else rest
    value = _VALUE.match(what)
    return Problem(line, path["path"] if path else "",
                   (value["quoted"] or value["bare"] or "") if value and path else "",
                   _expected(what), place["file"] if place else "",
                   int(place["line"]) if place else 0, int(place["column"]) if place else 0)


def _expected(what: str) -> str:
    """Messages say what is wrong first, and then, after a semicolon, what would be right."""
    return what.partition("; ")[2].strip()
