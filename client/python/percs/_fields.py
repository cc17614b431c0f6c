"""Messages from values as scenarios write them: ``40us``, ``64KiB``, ``lr``.

Units, ranges, choices and texts come from the options of the fields (proto/percs/v1/options.proto),
which scenario files, ``--set`` and the reference of scenarios use as well.
"""

from __future__ import annotations

import difflib
import fractions
import re
from typing import Dict, Iterator, List, Optional, Sequence, Tuple, Union

from google.protobuf.descriptor import Descriptor, EnumDescriptor
from google.protobuf.descriptor import FieldDescriptor as Field
from google.protobuf.message import Message

from percs.errors import FieldError
from percs.v1 import options_pb2, scenario_pb2

Value = Union[str, int, float, bool]
Time = Union[str, int]  # ``"50us"``, or picoseconds

Rules = options_pb2.FieldRules

SCALES: Dict[int, Dict[str, int]] = {
    Rules.TIME: {"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12},
    Rules.BYTES: {"B": 1, "kB": 10**3, "KiB": 2**10, "MB": 10**6, "MiB": 2**20, "GB": 10**9,
                  "GiB": 2**30},
    Rules.RATE: {"B/s": 1, "kB/s": 10**3, "KiB/s": 2**10, "MB/s": 10**6, "MiB/s": 2**20,
                 "GB/s": 10**9, "GiB/s": 2**30, "TB/s": 10**12},
    Rules.PACE: {"ps/s": 1, "ns/s": 10**3, "us/s": 10**6, "ms/s": 10**9, "s/s": 10**12},
}
_EXAMPLES: Dict[int, str] = {Rules.TIME: "40us", Rules.BYTES: "64KiB", Rules.RATE: "5GB/s",
                             Rules.PACE: "1us/s"}
_QUANTITY = re.compile(r"(?P<number>\d+(?:\.\d+)?) *(?P<unit>\S*)")
_STEP = re.compile(r"(?P<name>\w+)(?:\[(?P<index>\d+)\])?")


def rules_of(field: Field) -> options_pb2.FieldRules:
    """Unit, range, default and text of a field."""
    rules: options_pb2.FieldRules = field.GetOptions().Extensions[options_pb2.field]
    return rules


def nearest(wrong: str, names: Sequence[str], cutoff: float = 0.6) -> str:
    """``; did you mean "x"?``, or nothing."""
    close = difflib.get_close_matches(wrong, names, 1, cutoff)
    return f'; did you mean "{close[0]}"?' if close else ""


def quantity(name: str, value: Value, unit: int) -> int:
    """Base units (ps, bytes, bytes/s, ps/s) of a number with a unit; a whole number is base units.

    FieldError for anything else.
    """
    scales = SCALES[unit]
    if isinstance(value, int) and not isinstance(value, bool):
        if value < 0:
            raise FieldError(name, value, f"{value} is negative", "write 0 or more")
        return value
    match = _QUANTITY.fullmatch(str(value).strip())
    example = f"write a number and a unit, for example {_EXAMPLES[unit]}"
    if not match or not match["unit"]:
        raise FieldError(name, value, f'"{value}" has no unit' if match else
                         f'"{value}" is not a number with a unit', example)
    if match["unit"] not in scales:
        raise FieldError(name, value, f'"{value}" has the unknown unit "{match["unit"]}"',
                         "units: " + ", ".join(scales))
    scaled = fractions.Fraction(match["number"]) * scales[match["unit"]]
    if scaled.denominator != 1:
        base = next(iter(scales))
        raise FieldError(name, value, f'"{value}" is not a whole number of {base}', example)
    return int(scaled)


def time_ps(name: str, value: Time) -> int:
    """Picoseconds of ``"50us"`` or of a number of picoseconds."""
    return quantity(name, value, Rules.TIME)


def wall_ms(name: str, value: Union[str, int, float]) -> int:
    """Milliseconds of wall time: ``"30s"``, ``"wall:30s"``, or a number of seconds."""
    if isinstance(value, (int, float)):
        return int(value * 1000)
    return quantity(name, value[5:] if value.startswith("wall:") else value, Rules.TIME) // 10**9


def print_time(picoseconds: float) -> str:
    """A time with three digits: ``1.25us``."""
    for unit, scale in reversed(list(SCALES[Rules.TIME].items())):
        if abs(picoseconds) >= scale:
            return f"{picoseconds / scale:.3g}{unit}"
    return f"{picoseconds:.3g}ps"


def choices_of(kind: EnumDescriptor) -> Dict[str, int]:
    """The names that files use, with their numbers."""
    prefix = len(kind.values_by_number[0].name) - len("UNSPECIFIED")
    return {value.name[prefix:].lower(): value.number for value in kind.values if value.number}


def choice_name(kind: EnumDescriptor, number: int) -> str:
    """The name that files use for a number of an enumeration."""
    names = {n: name for name, n in choices_of(kind).items()}
    return names.get(number, "unknown")


def visible_fields(kind: Descriptor) -> List[Field]:
    """Those that files may have."""
    return [field for field in kind.fields if not rules_of(field).hidden]


def range_text(rules: options_pb2.FieldRules) -> str:
    """``1ps to 1000s``; "" without a range."""
    if not rules.min:
        return ""
    if rules.min_exclusive:
        return f"above {rules.min}, at most {rules.max}"
    return f"{rules.min} to {rules.max}" + (", or max" if rules.unit == Rules.PACE else "")


def _example(rules: options_pb2.FieldRules) -> str:
    default = "" if rules.default_text.startswith("(") else rules.default_text
    example = rules.example or default
    return f"write for example {example}" if example else ""


def _whole(name: str, value: Value, rules: options_pb2.FieldRules) -> int:
    text = str(int(value) if isinstance(value, float) and value.is_integer() else value)
    if isinstance(value, bool) or not re.fullmatch(r"-?\d+", text):
        raise FieldError(name, value, f'"{value}" is not a whole number', _example(rules))
    return int(text)


def _number(name: str, value: Value, rules: options_pb2.FieldRules) -> float:
    try:
        return float(value)
    except ValueError:
        raise FieldError(name, value, f'"{value}" is not a number', _example(rules)) from None


def parse(name: str, field: Field, value: Value) -> Value:
    """What a message holds for a value as a file writes it, checked against unit, range, choices.

    ``name`` is that of the field in a FieldError.
    """
    rules = rules_of(field)
    parsed: Value
    if rules.unit in SCALES:
        if rules.unit == Rules.PACE and value == "max":
            return 0
        if isinstance(value, (bool, float)) or value == "":
            raise FieldError(name, value, f"{value} has no unit",
                             f"write a number and a unit, for example {_EXAMPLES[rules.unit]}")
        parsed = quantity(name, value, rules.unit)
        low = quantity(name, rules.min, rules.unit) if rules.min else 0
        high = quantity(name, rules.max, rules.unit) if rules.min else parsed
        inside = low <= parsed <= high
    elif field.cpp_type == Field.CPPTYPE_STRING:
        return str(value)
    elif field.cpp_type == Field.CPPTYPE_BOOL:
        if value not in (True, False, "true", "false"):
            raise FieldError(name, value, f'"{value}" is not true or false', "write true or false")
        return value in (True, "true")
    elif field.cpp_type == Field.CPPTYPE_ENUM:
        choices = choices_of(field.enum_type)
        if value not in choices:
            raise FieldError(name, value,
                             f'"{value}" is not a choice{nearest(str(value), list(choices))}',
                             "choices: " + ", ".join(choices))
        return choices[str(value)]
    elif field.cpp_type == Field.CPPTYPE_DOUBLE:
        parsed = _number(name, value, rules)
        inside = not rules.min or (float(rules.min) <= parsed <= float(rules.max) and not
                                   (rules.min_exclusive and parsed == float(rules.min)))
    else:
        parsed = _whole(name, value, rules)
        inside = not rules.min or int(rules.min) <= parsed <= int(rules.max)
    if not inside:
        raise FieldError(name, value, f"{value} is out of range", f"allowed: {range_text(rules)}")
    return parsed


def set_fields(message: Message, values: Dict[str, Optional[Value]]) -> List[str]:
    """Sets the fields that ``message`` has; None is left out. Returns the names it lacks."""
    unknown = []
    for name, value in values.items():
        field = message.DESCRIPTOR.fields_by_name.get(name.rstrip("_"))
        if field is None or field.message_type is not None:
            unknown.append(name)
        elif value is not None:
            setattr(message, field.name, parse(field.name, field, value))
    return unknown


def _alike(fields: Dict[str, Field], name: str) -> bool:
    """Whether they are all groups of one type, which has this field.

    As for ``--set``: ``routing.mode`` is ``routing.fifo.mode`` and ``routing.rdma.mode``.
    """
    kinds = {field.message_type for field in fields.values()}
    kind = next(iter(kinds), None)
    return (len(kinds) == 1 and kind is not None and name in kind.fields_by_name and
            all(field.label != Field.LABEL_REPEATED for field in fields.values()))


def _elsewhere(name: str) -> List[str]:
    """Where in a scenario a field of this name is: the two least deep paths, as for ``--set``."""
    paths: List[str] = []

    def walk(kind: Descriptor, before: str) -> None:
        fields = {field.name: field for field in visible_fields(kind)}
        if name not in fields and _alike(fields, name):
            paths.append(before + name)
            return
        for field in fields.values():
            many = "[0]" if field.label == Field.LABEL_REPEATED and field.message_type else ""
            if field.message_type is not None:
                walk(field.message_type, f"{before}{field.name}{many}.")
            elif field.name == name:
                paths.append(before + name)

    walk(scenario_pb2.Scenario.DESCRIPTOR, "")
    return sorted(paths, key=lambda path: path.count("."))[:2]


def scenario_field(path: str) -> Field:
    """The field that a path names, ``workload.pattern.load`` or ``faults[0].at``.

    FieldError with the nearest name if there is none.
    """
    kind = scenario_pb2.Scenario.DESCRIPTOR
    steps = path.split(".")
    for number, step in enumerate(steps):
        match = _STEP.fullmatch(step)
        fields = {field.name: field for field in visible_fields(kind)}
        if match and match["name"] not in fields and _alike(fields, match["name"]):
            kind = next(iter(fields.values())).message_type  # the same field of every group
            fields = {field.name: field for field in visible_fields(kind)}
        if not match or match["name"] not in fields:
            where = '"' + ".".join(steps[:number]) + '"' if number else "a scenario"
            name = match["name"] if match else step
            near = nearest(name, list(fields), 0.75)
            there = [] if near else _elsewhere(name)
            if there:
                near = "; did you mean " + " or ".join(f'"{one}"' for one in there) + "?"
            raise FieldError(path, name, f'no field "{name}" in {where}{near}',
                             "fields: " + ", ".join(fields))
        field = fields[match["name"]]
        last = number + 1 == len(steps)
        if last and field.message_type is not None:
            raise FieldError(path, step, f'"{step}" is a group', "set one of its fields: " +
                             ", ".join(f.name for f in visible_fields(field.message_type)))
        if not last and field.message_type is None:
            raise FieldError(path, step, f'"{step}" is a single value and has no fields',
                             f'end the path with "{step}"')
        if not last:
            kind = field.message_type
    return field


def scenario_fields() -> Iterator[Tuple[str, Field]]:
    """Every field of a scenario with its path; elements of lists are ``name[]``."""
    def walk(kind: Descriptor, before: str) -> Iterator[Tuple[str, Field]]:
        for field in visible_fields(kind):
            many = "[]" if field.label == Field.LABEL_REPEATED else ""
            path = f"{before}{field.name}{many}"
            if field.message_type is None:
                yield path, field
            else:
                yield from walk(field.message_type, path + ".")
    return walk(scenario_pb2.Scenario.DESCRIPTOR, "")
