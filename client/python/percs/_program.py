"""percsctl, which does what happens in one process: reading scenarios, running, measuring.

Its JSON and its exit codes (docs/cli.md) are the interface; what it prints on standard error
becomes an exception.
"""

from __future__ import annotations

import asyncio
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
from typing import Any, Callable, List, Sequence, Type, Union

from percs import errors

Argument = Union[str, int, float, "os.PathLike[str]"]

_OK, _USAGE, _BAD_INPUT, _UNREACHABLE, _DEADLOCK, _VIOLATION, _REFUSAL = 0, 2, 3, 4, 5, 6, 7
_INTERRUPTED = 130
_OF_A_CODE = {_UNREACHABLE: errors.UnreachableError, _DEADLOCK: errors.DeadlockError,
              _REFUSAL: errors.RefusedError, _INTERRUPTED: errors.CancelledError}
_REFUSED = re.compile(r"certificate|has the identity of the role")  # before anybody was asked
_UNKNOWN = re.compile(r"\bno (?:local fabric|hub|blade|crossbar|link|fault|tree|run|process|row)\b|"
                      r"cannot be (?:opened|read)|has no process|does not exist|is unknown")
_ARGUMENT = re.compile(r'(?P<wrong>(?:"(?P<choice>[^"]*)"|(?P<number>\S+)) is '
                       r"(?:not a choice|out of range)); (?P<right>.+)", re.S)
_OPTION = re.compile(r"(?:^|: )(?P<option>--?[a-z][a-z-]*|[A-Z]{2,}): (?P<what>.*)", re.S)


def folder_of_programs() -> pathlib.Path:
    """Where percsctl is: $PERCS_BIN_DIR, the build that this package is part of, or the PATH."""
    named = os.environ.get("PERCS_BIN_DIR")
    places = [pathlib.Path(named)] if named else []
    places.append(pathlib.Path(__file__).parents[2] / "bin")
    for place in places:
        if os.access(place / "percsctl", os.X_OK):
            return place
    found = shutil.which("percsctl")
    if found:
        return pathlib.Path(found).parent
    raise errors.NotFoundError("percsctl is not there: install the programs, or set PERCS_BIN_DIR "
                               "to their folder")


def command(arguments: Sequence[Argument]) -> List[str]:
    """The command line of percsctl with these arguments."""
    return [str(folder_of_programs() / "percsctl"), *map(str, arguments)]


def error_of(arguments: Sequence[Argument], code: int, said: str) -> errors.PercsError:
    """The exception for an exit code other than 0 and for what was printed with it."""
    text = said.strip()
    prefix = f"percsctl {arguments[0]}: " if arguments else ""
    text = text[len(prefix):] if prefix and text.startswith(prefix) else text
    text = re.sub(r"\nSee `percsctl[^`]*--help`\.$", "", text)
    if _REFUSED.search(text):
        return errors.RefusedError(text)
    if code in _OF_A_CODE:
        return _OF_A_CODE[code](text)
    if code == _VIOLATION:
        return errors.ViolationError(text)
    if code == _BAD_INPUT:
        if _UNKNOWN.search(text.split("\n")[0]):
            return errors.NotFoundError(text)
        lines = [line for line in text.splitlines() if line]
        return errors.ScenarioError([errors.problem_of(line) for line in lines] or
                                    [errors.Problem(text)])
    if code == _USAGE:
        match = _OPTION.search(text)
        if not match:
            return errors.FieldError(str(arguments[0]), "", text, "")
        name = match["option"].lstrip("-").replace("-", "_").lower()
        value = _ARGUMENT.fullmatch(match["what"])
        if not value:
            return errors.FieldError(name, "", match["what"], "")
        return errors.FieldError(name, value["choice"] or value["number"] or "", value["wrong"],
                                 value["right"])
    state: Type[errors.PercsError] = (
        errors.StateError if re.search(r"no scenario|run \d+|in progress|not started|state",
                                       text) else errors.PercsError)
    return state(text or f"percsctl ended with exit code {code}")


def finish(arguments: Sequence[Argument], code: int, output: str, said: str) -> str:
    """Standard output, or the exception. A violation has a report on standard output, too."""
    if code == _OK:
        return output
    error = error_of(arguments, code, said)
    if isinstance(error, errors.ViolationError) and output.strip().startswith("{"):
        from percs.result import Result  # which reads what this module prints
        error.result = Result(json.loads(output))
        error.args = (str(error) or "violations: " + "; ".join(error.result.violations),)
    raise error


def run(*arguments: Argument) -> str:
    """Runs percsctl; returns its standard output."""
    done = subprocess.run(command(arguments), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    return finish(arguments, done.returncode, done.stdout, done.stderr)


def percsctl(*arguments: Argument) -> str:
    """Any command of percsctl: what it prints. For layouts of other programs, say ``--format osu``.
    """
    return run(*arguments)


def run_json(*arguments: Argument) -> Any:
    """Runs percsctl with ``--format json``; returns the document."""
    return json.loads(run(*arguments, "--format", "json"))


def run_json_with_page(on_page: Callable[[str], object], *arguments: Argument) -> Any:
    """The same for a command that prints the link of a page first; ``on_page`` gets the link."""
    whole = (*arguments, "--format", "json")
    with tempfile.TemporaryFile("w+") as output, subprocess.Popen(
            command(whole), stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.PIPE,
            text=True) as process:
        said = ""
        for line in process.stderr or ():
            if line.startswith("page: "):
                on_page(line[len("page: "):].strip())
            else:
                said += line
        code = process.wait()
        output.seek(0)
        return json.loads(finish(whole, code, output.read(), said))


async def run_json_async(*arguments: Argument) -> Any:
    """The same without blocking the event loop. Cancelled, it interrupts percsctl."""
    whole = (*arguments, "--format", "json")
    process = await asyncio.create_subprocess_exec(
        *command(whole), stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE)
    try:
        output, said = await process.communicate()
    except asyncio.CancelledError:
        process.terminate()
        await process.wait()
        raise
    code = process.returncode if process.returncode is not None else 1
    return json.loads(finish(whole, code, output.decode(), said.decode()))


def options(**values: Union[None, bool, Argument, Sequence[Argument]]) -> List[str]:
    """``--some-option VALUE`` for every keyword; None, False are left out, lists repeated."""
    arguments: List[str] = []
    for name, value in values.items():
        option = "--" + name.rstrip("_").replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            arguments.append(option)
        elif isinstance(value, (str, int, float, os.PathLike)):
            arguments += [option, str(value)]
        else:
            for one in value:
                arguments += [option, str(one)]
    return arguments
