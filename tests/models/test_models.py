"""Spin checks the models of the protocols exhaustively, and refuses every mutation of them.

Each model is a Promela file here; docs/models.md says what it is of. A case is a model with sizes
and, if it names one, an LTL formula. The sound model must have no error, in a search that is
complete: every state is stored, none is cut off. A mutation is an `#ifdef` in the model; with it
the same search must find an error. Marks like [W2] tie lines of models to sentences of the
documents. Every run checks the small cases; --full (PERCS_FULL=1) all cases and mutations.
"""

import collections
import os
import pathlib
import re
import resource
import shutil
import subprocess
import tempfile
import time
import unittest

FOLDER = pathlib.Path(__file__).resolve().parent
DOCUMENT = FOLDER.parents[1] / "docs" / "protocol.md"
FULL = os.environ.get("PERCS_FULL") == "1"
MEMORY_MB = 4000
LIMIT_SECONDS = 900
DEPTH = 100_000

# A model, its sizes, and a formula of it that is checked, or assertions only.
Case = collections.namedtuple("Case", "model sizes formula", defaults=("",))

SMALL = (
    Case("sessions", "MESSAGES=2 COMMANDS=1 BREAKS=1 CRASHES=0"),
    Case("epochs", "CHANGES=1 LOSSES=1 RETURNS=1", "tables_become_right"),
    Case("windows", "LOSSES=1 RETURNS=1 WINDOWS=2"),
)
LARGE = (
    Case("sessions", "MESSAGES=3 COMMANDS=1 BREAKS=1 CRASHES=1"),
    Case("sessions", "MESSAGES=2 COMMANDS=1 BREAKS=2 CRASHES=1"),
    Case("sessions", "MESSAGES=2 COMMANDS=1 BREAKS=1 CRASHES=2"),
    Case("sessions", "MESSAGES=2 COMMANDS=1 BREAKS=1 CRASHES=1", "everything_arrives"),
    Case("sessions", "MESSAGES=2 COMMANDS=1 BREAKS=1 CRASHES=1", "once"),
    Case("epochs", "CHANGES=3 LOSSES=2 RETURNS=2"),
    Case("epochs", "CHANGES=2 LOSSES=2 RETURNS=1", "tables_become_right"),
    Case("epochs", "CHANGES=2 LOSSES=2 RETURNS=1", "one_plan_at_a_time"),
    Case("windows", "LOSSES=2 RETURNS=1"),
    Case("windows", "LOSSES=2 RETURNS=0 CRASHES=1 WINDOWS=2"),
    Case("windows", "LOSSES=1 RETURNS=1 CRASHES=1"),
    Case("windows", "LOSSES=2 RETURNS=0 CRASHES=1 CHAIN=1"),
    Case("windows", "LOSSES=1 RETURNS=1 WINDOWS=2 EVERY_CHOICE=1"),
    Case("windows", "LOSSES=1 RETURNS=1", "the_run_ends"),
    Case("windows", "LOSSES=1 RETURNS=1", "nobody_is_ahead"),
)
# The case that a mutation is checked in; those not named here: the first of its model in USUAL.
USUAL = {
    "sessions": Case("sessions", "MESSAGES=2 COMMANDS=1 BREAKS=1 CRASHES=1"),
    "epochs": Case("epochs", "CHANGES=2 LOSSES=2 RETURNS=1", "tables_become_right"),
    "windows": Case("windows", "LOSSES=2 RETURNS=1"),
}
UNUSUAL = {
    "FORGET_ANSWERS": Case("windows", "LOSSES=2 RETURNS=0 CRASHES=1 WINDOWS=2"),
    "RETAKE_WITHOUT_THE_PLACE": Case("windows", "LOSSES=2 RETURNS=0 CRASHES=1 CHAIN=1"),
}
SWITCHES = {"CHAIN", "EVERY_CHOICE"}  # other shapes of a sound model

Outcome = collections.namedtuple("Outcome", "error complete states depth seconds memory text")


def text_of(model):
    return (FOLDER / f"{model}.pml").read_text()


def mutations_of(model):
    text = text_of(model)
    sizes = set(re.findall(r"#ifndef (\w+)\n#define \1 ", text))
    return sorted(set(re.findall(r"^#ifn?def (\w+)$", text, re.M)) - sizes - SWITCHES)


def run(command, folder, limit=LIMIT_SECONDS, memory_mb=None):
    def bound():
        if memory_mb:
            resource.setrlimit(resource.RLIMIT_AS, (memory_mb << 20, memory_mb << 20))
    result = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, timeout=limit, check=False,
                            preexec_fn=bound)
    return result.returncode, result.stdout.decode(errors="replace")


def number(pattern, text, kind=int):
    found = re.findall(pattern, text)
    return kind(found[-1]) if found else kind(0)


def check(case, mutation=""):
    """Builds the verifier of a case, runs it, and reads what it says."""
    with tempfile.TemporaryDirectory(prefix="percs-model-") as folder:
        defines = [f"-D{size}" for size in case.sizes.split()]
        if mutation:
            defines.append(f"-D{mutation}")
        code, text = run(["spin", "-a", *defines, FOLDER / f"{case.model}.pml"], folder)
        if code != 0 or re.search(r"\bError\b", text):
            raise AssertionError(f"spin refuses {case.model}.pml:\n{text}")
        options = ["-DCOLLAPSE", f"-DMEMLIM={MEMORY_MB}"]
        options += [] if case.formula else ["-DSAFETY", "-DNOCLAIM"]
        code, text = run(["gcc", "-O1", "-w", *options, "-o", "pan", "pan.c"], folder)
        if code != 0:
            raise AssertionError(f"the verifier of {case.model} does not compile:\n{text}")
        search = ["-a", "-N", case.formula] if case.formula else []
        start = time.monotonic()
        _, text = run(["./pan", f"-m{DEPTH}", "-n", *search], folder, memory_mb=MEMORY_MB + 500)
        seconds = time.monotonic() - start
    error = re.search(r"^pan:\d+: (.*)$", text, re.M)
    count = re.search(r"errors: (\d+)", text)
    # "Full statespace search": no bitstate, no hash compaction, which say so in this line.
    complete = (count is not None and re.search(r"^Full statespace search for:", text, re.M)
                and not re.search(r"max search depth too small|Search not completed|out of memory|"
                                  r"memory limit|aborted", text))
    return Outcome(error.group(1) if error else "", bool(complete),
                   number(r"(\d+) states, stored", text), number(r"depth reached (\d+)", text),
                   seconds, number(r"([\d.]+)\s+total actual memory", text, float), text)


def title(case):
    formula = f", formula {case.formula}" if case.formula else ", assertions"
    return f"{case.model} ({case.sizes}){formula}"


class ModelTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for tool in ("spin", "gcc"):
            if not shutil.which(tool):
                raise AssertionError(f"{tool} is not there; deploy/install --engines installs it")

    def check_sound(self, case):
        outcome = check(case)
        self.assertEqual("", outcome.error, f"{title(case)} has an error\n{outcome.text[-3000:]}")
        self.assertTrue(outcome.complete, f"{title(case)} was not searched as a whole\n"
                                          f"{outcome.text[-3000:]}")
        self.assertGreater(outcome.states, 100, title(case))
        print(f"{title(case)}: {outcome.states} states, depth {outcome.depth}, "
              f"{outcome.seconds:.1f} s, {outcome.memory:.0f} MB", flush=True)

    def check_refused(self, model, mutation):
        case = UNUSUAL.get(mutation, USUAL[model])
        outcome = check(case, mutation)
        self.assertNotEqual("", outcome.error, f"{title(case)} accepts {mutation}")
        print(f"{model} refuses {mutation}: {outcome.error[:120]}; {outcome.states} states, "
              f"depth {outcome.depth}, {outcome.seconds:.1f} s", flush=True)

    def test_marks_of_models_and_of_the_protocol_are_the_same(self):
        mark = re.compile(r"\[([A-Z]\d+)\]")
        written = set(mark.findall(DOCUMENT.read_text()))
        used = set()
        for model in USUAL:
            # "[S1..S6]" in the head of a model names them all; its lines name each.
            used |= set(mark.findall(text_of(model)))
        self.assertEqual(written, used, "sentences of docs/protocol.md and lines of the models")

    def test_every_mutation_is_known(self):
        for model in USUAL:
            self.assertGreaterEqual(len(mutations_of(model)), 5, model)
        every = {mutation for model in USUAL for mutation in mutations_of(model)}
        self.assertEqual(set(), set(UNUSUAL) - every)


def sound(case):
    return lambda self: self.check_sound(case)


def refused(model, mutation):
    return lambda self: self.check_refused(model, mutation)


for position, each in enumerate(SMALL + (LARGE if FULL else ()), 1):
    setattr(ModelTest, f"test_{position:02}_{each.model}_{each.formula or 'assertions'}",
            sound(each))
if FULL:
    for each in USUAL:
        for change in mutations_of(each):
            setattr(ModelTest, f"test_{each}_refuses_{change.lower()}", refused(each, change))


if __name__ == "__main__":
    unittest.main()
