#!/usr/bin/env python3
"""Draws one-line mutations of a part of the sources by operator and seed; tests must notice them.

    tests/differential/draw_mutations.py --list                        the parts
    tests/differential/draw_mutations.py codec --count 12 --seed 3     twelve of one part
    tests/differential/draw_mutations.py codec --seed 3 --dry          what would be drawn

Works on a copy, like mutate.py. For each mutation only the program with the cheapest tests of that
part is built, and these tests run; what they do not notice is given all tests of that program and,
of the engine, those against the reference. A mutation that does not compile is drawn again. The
last lines are the score and those that survived. Exit code 0: the score is at least --least
percent.
"""

import argparse
import collections
import os
import pathlib
import random
import re
import shutil
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import mutation_trial  # noqa: E402

# What the tests of a program are to notice: files, the program, its tests.
Part = collections.namedtuple("Part", "files target tests")
PARTS = {
    "messages": Part("emulator/hfi/message_layer.cc", "emulator_test",
                     "*Message*:*FaultHeal*:*FaultEffects*:*Rejoin*"),
    "cau": Part("emulator/cau/*.cc", "emulator_test", "Cau*:*Tree*"),
    "rdma": Part("emulator/hfi/rdma.cc emulator/hfi/window_*.cc", "emulator_test",
                 "Rdma*:Windows*:ReplyQueue*:Hfi*"),
    "atomics": Part("emulator/hfi/atomic_unit.cc emulator/hfi/nmmu.cc", "emulator_test",
                    "Rdma*:Windows*:Hfi*"),
    "management": Part("emulator/management/network_manager.cc emulator/management/tree_service.cc",
                       "emulator_test", "NetworkManager*:Tree*:Rejoin*:Loss*:Fault*"),
    "planner": Part("emulator/routing/planner.cc emulator/routing/fabric_plan.cc "
                    "emulator/routing/detours.cc", "emulator_test",
                    "Planner*:Replan*:CheckTables*:CheckIndirect*:Forwarding*"),
    "codec": Part("daemon/link/codec.cc", "shell_test", "Codec*"),
    "state_store": Part("daemon/controller/store/state_store.cc", "shell_test", "StateStore*"),
    "loss_watch": Part("daemon/controller/members/loss_watch.cc", "shell_test", "LossWatch*"),
    "output": Part("emulator/node/hub_output.cc emulator/sim/lookahead.cc", "emulator_test",
                   "EarliestOutput*:Lookahead*"),
    "window_policy": Part("daemon/controller/run/window_master.cc", "shell_test", "WindowMaster*"),
    "sessions": Part("daemon/stream/session.h", "shell_test", "Session*"),
    "matching": Part("client/mpi/matching.cc client/mpi/flows.cc", "mpi_test", "*"),
}
# One line of a file, changed.
Drawn = collections.namedtuple("Drawn", "operator file line old new")
Verdict = collections.namedtuple("Verdict", "drawn outcome detail seconds")

# What only people read may be anything.
TEXT = re.compile(
    r"fmt::format|spdlog::|\bNote\(|PERCS_CHECK|absl::\w+Error|^\s*\"|#include|using ")
STATEMENT = re.compile(
    r"^\s+(?!(?:return|break|continue|case|default|using|delete|if|for|while|else)\b)"
    r"(?:\+\+|--)?[\w.\[\]>()*-]+(?:\([^;]*\)| (?:[|&+*-]|<<|>>)?= [^;]+|\+\+|--)?;$")


def replacements(pattern, pairs):
    """Sites of `pattern` in a line, each with what stands there instead."""
    def sites(line):
        for match in re.finditer(pattern, line):
            for other in pairs.get(match.group(0), ()):
                yield line[:match.start()] + other + line[match.end():]
    return sites


def off_by_one(line):
    for match in re.finditer(r"(?<![\w.'])\d+(?![\w.'])", line):
        yield line[:match.start()] + str(int(match.group(0)) + 1) + line[match.end():]
    for match in re.finditer(r" ([+-]) 1\b", line):
        yield line[:match.start()] + line[match.end():]


def dropped_statement(line):
    if STATEMENT.match(line):
        yield re.match(r"\s*", line).group(0) + ";"


def swapped_operands(line):
    for match in re.finditer(r"\b([\w.>\[\]-]+) (-|/|<<|>>) ([\w.>\[\]-]+)\b", line):
        left, sign, right = match.groups()
        if left != right:
            yield f"{line[:match.start()]}{right} {sign} {left}{line[match.end():]}"


OPERATORS = {
    "comparison": replacements(r" (?:<|<=|>|>=|==|!=) ", {
        " < ": (" <= ",), " <= ": (" < ",), " > ": (" >= ",), " >= ": (" > ",),
        " == ": (" != ",), " != ": (" == ",)}),
    "logic": replacements(r" && | \|\| |std::min|std::max", {
        " && ": (" || ",), " || ": (" && ",), "std::min": ("std::max",),
        "std::max": ("std::min",)}),
    "off by one": off_by_one,
    "dropped statement": dropped_statement,
    "swapped operands": swapped_operands,
    "narrowed type": replacements(r"std::u?int(?:64|32|16)_t", {
        "std::uint64_t": ("std::uint16_t",), "std::int64_t": ("std::int16_t",),
        "std::uint32_t": ("std::uint8_t",), "std::uint16_t": ("std::uint8_t",)}),
}


def paths_of(root, files):
    return [path for pattern in files.split() for path in sorted(root.glob(pattern))]


def sites_of(root, files):
    """Every mutation there is, by operator, in the order of the sources."""
    found = {operator: [] for operator in OPERATORS}
    for path in paths_of(root, files):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            code = line.split("//")[0].rstrip()
            if not code.strip() or TEXT.search(code):
                continue
            for operator, sites in OPERATORS.items():
                for new in sites(code):
                    found[operator].append(
                        Drawn(operator, str(path.relative_to(root)), number, line, new))
    return found


def draw(root, files, seed):
    """All of them in a drawn order, operators in turn, so that each has its share of the first."""
    found = sites_of(root, files)
    generator = random.Random(seed)
    for sites in found.values():
        generator.shuffle(sites)
    while any(found.values()):
        for sites in found.values():
            if sites:
                yield sites.pop()


def verdict_on(trial, drawn):
    def edit(text):
        lines = text.split("\n")
        assert lines[drawn.line - 1] == drawn.old, f"{drawn.file}:{drawn.line} has changed"
        lines[drawn.line - 1] = drawn.new
        return "\n".join(lines)
    start = time.monotonic()
    return Verdict(drawn, *trial.outcome(drawn.file, edit), time.monotonic() - start)


def campaign(trial, drawn, count, say=print):
    """Verdicts on the first `count` of `drawn` that compile."""
    verdicts = []
    for mutation in drawn:
        if len(verdicts) == count:
            break
        verdict = verdict_on(trial, mutation)
        if verdict.outcome != "does not compile":
            verdicts.append(verdict)
        say(f"{mutation.file}:{mutation.line} {mutation.operator}: {verdict.outcome} "
            f"{verdict.detail} ({verdict.seconds:.0f} s)\n   - {mutation.old.strip()}\n"
            f"   + {mutation.new.strip()}")
    return verdicts


def score(verdicts):
    """Percent that tests noticed; of none, all."""
    killed = sum(verdict.outcome == "killed" for verdict in verdicts)
    return 100 * killed / len(verdicts) if verdicts else 100.0


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help="of --list")
    parser.add_argument("--list", action="store_true", help="print the parts")
    parser.add_argument("--dry", action="store_true", help="print what is drawn, build nothing")
    parser.add_argument("--count", type=int, default=12, help="mutations of each part")
    parser.add_argument("--seed", type=int, default=int(os.environ.get("PERCS_SEED", "1")))
    parser.add_argument("--least", type=float, default=0, help="percent that must be noticed")
    parser.add_argument("--jobs", type=int, default=int(os.environ.get("PERCS_JOBS", 2)))
    parser.add_argument("--scratch", type=pathlib.Path, help="keep the copy and its build here")
    options = parser.parse_args()
    unknown = set(options.parts) - set(PARTS)
    if unknown or not (options.list or options.parts):
        parser.error(f"parts are {', '.join(PARTS)}" + (f"; not {unknown}" if unknown else ""))
    return options


def main():
    options = parse_arguments()
    if options.list:
        for name, part in PARTS.items():
            count = sum(len(sites) for sites in sites_of(mutation_trial.ROOT, part.files).values())
            print(f"{name:14} {count:5} mutations  {part.files}; {part.target} {part.tests}")
        return 0
    if options.dry:
        for name in options.parts:
            drawn = draw(mutation_trial.ROOT, PARTS[name].files, options.seed)
            for _, mutation in zip(range(options.count), drawn):
                print(f"{mutation.file}:{mutation.line} {mutation.operator}\n"
                      f"   - {mutation.old.strip()}\n   + {mutation.new.strip()}")
        return 0
    scratch = options.scratch or pathlib.Path(tempfile.mkdtemp(prefix="percs-drawn-"))
    scratch.mkdir(parents=True, exist_ok=True)
    # Of all parts, so that the next part finds the units of many files as they are.
    alone = [str(path.relative_to(mutation_trial.ROOT)) for part in PARTS.values()
             for path in paths_of(mutation_trial.ROOT, part.files) if path.suffix == ".cc"]
    rows, every = [], []
    try:
        for name in options.parts:
            part = PARTS[name]
            then = [part.target] + ["differential_test"] * (part.target == "emulator_test")
            trial = mutation_trial.prepare(scratch, part.target, part.tests, alone, options.jobs,
                                           then=then)
            drawn = draw(mutation_trial.ROOT, part.files, options.seed)
            verdicts = campaign(trial, drawn, options.count)
            every += verdicts
            rows.append(f"{name:14} {score(verdicts):5.1f} % of {len(verdicts)} noticed")
    finally:
        if not options.scratch:
            shutil.rmtree(scratch, ignore_errors=True)
    for verdict in every:
        if verdict.outcome == "survived":
            drawn = verdict.drawn
            print(f"survived: {drawn.file}:{drawn.line} {drawn.operator}: {drawn.new.strip()}")
    print("\n".join(rows), f"\nseed {options.seed}")
    return 0 if score(every) >= options.least else 1


if __name__ == "__main__":
    sys.exit(main())
