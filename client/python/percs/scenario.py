"""Scenario files, with what a program changes in them."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import tempfile
import weakref
from typing import Any, Dict, List, Optional, Sequence, Union

import pandas as pd

from percs import _fields, _program, _shown, errors
from percs._fields import Value


class Scenario:
    """A machine, its workload and its faults: a file, and fields with other values.

    ``percsctl`` reads the file, here and wherever the scenario runs, so every rule of
    docs/scenario.md holds. What is set here changes no file.
    """

    def __init__(self, path: Union[str, "os.PathLike[str]"],
                 settings: Optional[Dict[str, Value]] = None, seed: Optional[int] = None) -> None:
        self._path = pathlib.Path(path)
        self._settings: Dict[str, Value] = {}
        self._seed: Optional[int] = None
        self._folder: Optional[tempfile.TemporaryDirectory[str]] = None
        for field, value in (settings or {}).items():
            self.set(field, value)
        if seed is not None:
            self.seed = seed

    @classmethod
    def load(cls, path: Union[str, "os.PathLike[str]"]) -> "Scenario":
        """Reads and checks a file: .yaml, .json or .textproto.

        NotFoundError if it is not there; ScenarioError with everything that is wrong in it.
        """
        scenario = cls(path)
        scenario.check()
        return scenario

    @classmethod
    def from_text(cls, text: str, format: str = "yaml") -> "Scenario":
        """A scenario that is written in the program; ``format`` is yaml, json or textproto.

        Trace files of a workload have to be absolute paths.
        """
        folder = tempfile.TemporaryDirectory(prefix="percs-")
        path = pathlib.Path(folder.name) / f"scenario.{format}"
        path.write_text(text)
        scenario = cls(path)
        scenario._folder = folder
        weakref.finalize(scenario, folder.cleanup)
        scenario.check()
        return scenario

    @property
    def path(self) -> pathlib.Path:
        """The file."""
        return self._path

    @property
    def settings(self) -> Dict[str, Value]:
        """A copy of what was set, by path."""
        return dict(self._settings)

    @property
    def seed(self) -> Optional[int]:
        """Random seed in place of the file's; None: the file's."""
        return self._seed

    @seed.setter
    def seed(self, seed: Optional[int]) -> None:
        if seed is not None:
            _fields.parse("seed", _fields.scenario_field("seed"), seed)
        self._seed = seed

    def set(self, path: str, value: Value) -> "Scenario":
        """Gives a field another value: ``sc.set("workload.pattern.load", 0.2)``. Returns self.

        Quantities need their unit, as in a file: ``"40us"``, ``"64KiB"``; a whole number is in base
        units (ps, bytes, bytes/s). FieldError with the nearest name, or with the range.
        """
        field = _fields.scenario_field(path)
        _fields.parse(path, field, value)
        self._settings[path] = value
        return self

    def copy(self) -> "Scenario":
        """Another one, which can be changed on its own."""
        other = Scenario(self._path)
        other._settings = dict(self._settings)
        other._seed = self._seed
        other._folder = self._folder
        return other

    def arguments(self) -> List[str]:
        """``--set`` and ``--seed`` for percsctl."""
        arguments: List[str] = []
        for path, value in self._settings.items():
            arguments += ["--set", f"{path}={written(path, value)}"]
        if self._seed is not None:
            arguments += ["--seed", str(self._seed)]
        return arguments

    def check(self, for_: str = "both") -> None:
        """Raises ScenarioError with everything that is wrong, with the values that were set.

        ``for_``: what it is checked for, ``run``, ``apply`` or ``both``.
        """
        for row in _check([self._path], for_, self.arguments()):
            if row["ok"]:
                continue
            problems = [errors.problem_of(line) for line in row["errors"]]
            if not self._path.exists():
                raise errors.NotFoundError(problems[0].message)
            raise errors.ScenarioError(problems)

    def __repr__(self) -> str:
        changes = "".join(f", {path}={value!r}" for path, value in self._settings.items())
        seed = "" if self._seed is None else f", seed={self._seed}"
        return f"Scenario({str(self._path)!r}{changes}{seed})"

    def _repr_html_(self) -> str:
        rows = [("file", str(self._path)), *((p, str(v)) for p, v in self._settings.items())]
        if self._seed is not None:
            rows.append(("seed", str(self._seed)))
        return _shown.table(rows)


def written(path: str, value: Value) -> str:
    """As a file has it: whole numbers of base units get their unit."""
    if isinstance(value, bool):
        return "true" if value else "false"
    unit = _fields.rules_of(_fields.scenario_field(path)).unit
    if isinstance(value, int) and unit in _fields.SCALES:
        return f"{value}{next(iter(_fields.SCALES[unit]))}"
    return str(value)


def check(files: Sequence[Union[str, "os.PathLike[str]"]],
          for_: str = "both") -> List[Dict[str, Any]]:
    """Checks scenario files; per file ``file``, ``ok`` and ``errors``, as texts."""
    return _check(files, for_, [])


def _check(files: Sequence[Union[str, "os.PathLike[str]"]], for_: str,
           changes: List[str]) -> List[Dict[str, Any]]:
    arguments = ["check", *map(str, files), "--for", for_, "--format", "json", *changes]
    done = subprocess.run(_program.command(arguments), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if not done.stdout.strip():
        _program.finish(arguments, done.returncode or 1, "", done.stderr)
    rows: List[Dict[str, Any]] = json.loads(done.stdout)
    return rows


def schema() -> Dict[str, Any]:
    """The JSON Schema of scenario files."""
    document: Dict[str, Any] = json.loads(_program.run("schema"))
    return document


def fields(containing: str = "") -> pd.DataFrame:
    """Every field of a scenario: range, default and meaning, by path; those with ``containing``."""
    rows = []
    for path, field in _fields.scenario_fields():
        rules = _fields.rules_of(field)
        if containing not in path and containing.lower() not in rules.doc.lower():
            continue
        kind = ", ".join(_fields.choices_of(field.enum_type)) if field.enum_type else ""
        rows.append({"field": path, "range": kind or _fields.range_text(rules),
                     "default": rules.default_text, "meaning": rules.doc})
    return pd.DataFrame(rows, columns=["field", "range", "default", "meaning"]).set_index("field")
