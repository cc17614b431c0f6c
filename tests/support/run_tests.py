"""Runs GoogleTest programs, unittest files and libFuzzer targets, and counts what they say.

libFuzzer targets run their kept inputs and nothing else: a run of the tests must not depend on
luck. With --search they look for new ones, network_campaign for networks, scenario_campaign for
scenarios, control_campaign for histories of the control plane.

tests/run calls this once per tier. Each program runs in a session of its own, under a time limit,
and whatever it left running is ended with it. The tally goes to <results>/<tier>.tally as
"passed failed skipped", and a line for each failure to <results>/<tier>.failed; the exit code is 1
when anything failed.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TIME_LIMIT_SECONDS = 900
CAMPAIGN_SECONDS = 7200
LOG_LINES_SHOWN = 60
LOG_COLUMNS_SHOWN = 300


@dataclasses.dataclass
class Outcome:
    """What one program (or one shard of it) reported."""

    name: str
    passed: int = 0
    failures: list = dataclasses.field(default_factory=list)  # (test name, text)
    skipped: list = dataclasses.field(default_factory=list)
    seconds: float = 0.0
    note: str = ""
    log: pathlib.Path = None


class CountingResult(unittest.TextTestResult):
    """testsRun minus the failures would count a test with two failed subtests twice."""

    passed = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1


live_sessions = set()


def end_sessions(number, frame):
    """Ctrl-C: the programs are in sessions of their own, so the terminal does not reach them."""
    for session in list(live_sessions):
        try:
            os.killpg(session, signal.SIGKILL)
        except ProcessLookupError:
            pass
    os._exit(128 + number)


def run_process(command, log, limit, environment=None):
    """Returns (exit code or None when it ran over its limit, seconds)."""
    start = time.monotonic()
    with open(log, "wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=subprocess.STDOUT, cwd=ROOT, env=environment,
                                   start_new_session=True)
        live_sessions.add(process.pid)
        try:
            code = process.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            try:  # the session's own group only: what this program started and left behind
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
            live_sessions.discard(process.pid)
    return code, time.monotonic() - start


def ending(code, limit):
    if code is None:
        return f"ran longer than {limit} s and was stopped"
    if code < 0:
        return f"ended by signal {-code} ({signal.Signals(-code).name})"
    return f"exit code {code}"


def tail(log, lines=LOG_LINES_SHOWN):
    text = log.read_text(errors="replace").splitlines()
    return "\n".join(text[-lines:])


def gtest_names(program, pattern):
    command = [str(program), "--gtest_list_tests", f"--gtest_filter={pattern or '*'}"]
    text = subprocess.run(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, check=True,
                          timeout=60).stdout.decode()
    return [line for line in text.splitlines() if line.startswith("  ")]


def text_of(log_text, test):
    """The lines between RUN and FAILED of one test."""
    start = log_text.find(f"[ RUN      ] {test}\n")
    if start < 0:
        return ""
    end = log_text.find(f"[  FAILED  ] {test}", start)
    return log_text[start:end if end >= 0 else None].rstrip()


def read_gtest(outcome, report, log, code, limit):
    log_text = log.read_text(errors="replace")
    if report.exists():
        for suite in json.loads(report.read_text()).get("testsuites", []):
            for test in suite["testsuite"]:
                name = f"{suite['name']}.{test['name']}"
                if test.get("result") == "SKIPPED":
                    outcome.skipped.append(name)
                elif test.get("failures"):
                    outcome.failures.append((name, text_of(log_text, name)))
                elif test.get("status") == "RUN":
                    outcome.passed += 1
    else:  # it died: count what it finished, and name the test it was in
        outcome.passed += len(re.findall(r"^\[       OK \] \S+ \(\d+ ms\)", log_text, re.M))
        for name in re.findall(r"^\[  FAILED  \] (\S+?),? .*\(\d+ ms\)", log_text, re.M):
            outcome.failures.append((name, text_of(log_text, name)))
        started = re.findall(r"^\[ RUN      \] (\S+)", log_text, re.M)
        last = started[-1] if started else outcome.name
        outcome.failures.append((last, f"{ending(code, limit)}\n{tail(log)}"))
        return
    if code != 0 and not outcome.failures:
        outcome.failures.append((outcome.name, f"{ending(code, limit)}\n{tail(log)}"))


def run_gtest_shard(options, program, shard, shards):
    name = program.name if shards == 1 else f"{program.name}.{shard}"
    log = options.results / f"{options.tier}.{name}.log"
    report = log.with_suffix(".json")
    report.unlink(missing_ok=True)
    environment = dict(os.environ, GTEST_TOTAL_SHARDS=str(shards), GTEST_SHARD_INDEX=str(shard))
    command = [str(program), f"--gtest_output=json:{report}"]
    if options.filter:
        command.append(f"--gtest_filter={options.filter}")
    limit = TIME_LIMIT_SECONDS * options.slow
    outcome = Outcome(name=program.name, log=log)
    code, outcome.seconds = run_process(command, log, limit, environment)
    read_gtest(outcome, report, log, code, limit)
    return outcome


def run_gtest(options, program):
    """All shards of one program, side by side, as one outcome."""
    try:
        names = gtest_names(program, options.filter)
    except (subprocess.SubprocessError, OSError) as error:
        message = f"cannot list its tests: {error}"
        return Outcome(name=program.name, failures=[(program.name, message)])
    if not names:
        return Outcome(name=program.name, note="no tests match")
    shards = min(options.jobs, len(names))
    start = time.monotonic()

    def run_shard(shard):
        return run_gtest_shard(options, program, shard, shards)

    with concurrent.futures.ThreadPoolExecutor(shards) as pool:
        parts = list(pool.map(run_shard, range(shards)))
    whole = Outcome(name=program.name, log=parts[0].log, seconds=time.monotonic() - start)
    for part in parts:
        whole.passed += part.passed
        whole.failures += part.failures
        whole.skipped += part.skipped
    return whole


def filter_to_python(pattern):
    """GoogleTest's 'A.b:C*.d-E.*' has no twin in unittest; only the positive globs are kept."""
    return [p.replace("/", "_") for p in pattern.split("-")[0].split(":") if p]


def child(file, report, pattern):
    """Inside the child process: runs one unittest file and writes what happened."""
    path = pathlib.Path(file)
    sys.path[:0] = [str(path.parent), str(ROOT / "tests" / "support")]
    loader = unittest.TestLoader()
    if pattern:
        loader.testNamePatterns = [f"*{p}" if not p.startswith("*") else p
                                   for p in filter_to_python(pattern)]
    suite = loader.loadTestsFromName(path.stem)
    runner = unittest.TextTestRunner(stream=sys.stdout, verbosity=2, resultclass=CountingResult)
    result = runner.run(suite)
    bad = [(test.id(), text) for test, text in result.failures + result.errors]
    bad += [(test.id(), "passed although marked as expected to fail")
            for test in result.unexpectedSuccesses]
    skipped = [f"{test.id()}: {reason}" for test, reason in result.skipped]
    pathlib.Path(report).write_text(
        json.dumps({"passed": result.passed, "failures": bad, "skipped": skipped}))
    return 0 if not bad else 1


def run_python(options, file):
    label = os.path.relpath(file, ROOT)
    log = options.results / f"{options.tier}.{file.stem}.log"
    report = log.with_suffix(".json")
    report.unlink(missing_ok=True)
    limit = TIME_LIMIT_SECONDS * options.slow
    command = [sys.executable, "-B", __file__, "--child", str(file), "--report", str(report),
               "--tier", options.tier]
    if options.filter:
        command += [f"--filter={options.filter}"]
    outcome = Outcome(name=label, log=log)
    code, outcome.seconds = run_process(command, log, limit)
    if report.exists():
        data = json.loads(report.read_text())
        outcome.passed, outcome.skipped = data["passed"], data["skipped"]
        outcome.failures = [tuple(pair) for pair in data["failures"]]
        if not outcome.passed and not outcome.failures and not outcome.skipped:
            outcome.note = "no tests match"
    else:
        outcome.failures.append((label, f"{ending(code, limit)}\n{tail(log)}"))
    return outcome


def fuzz_command(options, program, kept_corpus):
    """Of the kept corpus alone, or of a search that begins with it."""
    name = program.name
    command = [str(program), "-timeout=60", "-rss_limit_mb=2048", "-print_final_stats=1"]
    if not options.search:
        return command + ["-runs=0", str(kept_corpus)]
    new_corpus = program.parent.parent / "corpus" / name  # kept here, for the next search
    new_corpus.mkdir(parents=True, exist_ok=True)
    seed = options.search_seed % (2**31 - 1) + 1  # zero means "by the clock"
    command += [f"-max_total_time={options.search}", f"-seed={seed}",
                f"-artifact_prefix={new_corpus.parent}/{name}-"]
    dictionary = kept_corpus.with_suffix(".dict")
    if dictionary.exists():
        command.append(f"-dict={dictionary}")
    return command + [str(new_corpus), str(kept_corpus)]


def run_fuzz(options, program):
    name = program.name
    kept_corpus = options.corpus / name.removesuffix("_fuzz")
    log = options.results / f"{options.tier}.{name}.log"
    outcome = Outcome(name=name, log=log)
    kept = len(list(kept_corpus.iterdir())) if kept_corpus.is_dir() else 0
    if not kept:
        outcome.failures.append((name, f"{kept_corpus} holds no input to try"))
        return outcome
    limit = options.search + 600 if options.search else TIME_LIMIT_SECONDS
    code, outcome.seconds = run_process(fuzz_command(options, program, kept_corpus), log, limit)
    log_text = log.read_text(errors="replace")
    executed = re.search(r"stat::number_of_executed_units:\s*(\d+)", log_text)
    if code == 0 and executed and int(executed.group(1)) >= kept:
        edges = re.findall(r"\bcov: (\d+)", log_text)
        outcome.passed = 1
        outcome.note = f"{executed.group(1)} inputs, {edges[-1] if edges else 0} edges covered"
        return outcome
    what = ending(code, limit) if code != 0 else f"it did not try all of {kept} kept inputs"
    found = re.search(r"Test unit written to (\S+)", log_text)
    if found:
        what += (f"\nto see it again: {program} {found.group(1)}"
                 f"\nto keep it: cp {found.group(1)} {kept_corpus}/")
    outcome.failures.append((name, f"{what}\n{tail(log)}"))
    return outcome


# What NAME_campaign tries, and how one that fails is kept.
Campaign = collections.namedtuple("Campaign", "thing things keep")
CAMPAIGNS = {
    "network": Campaign("network", "networks", "add the number to kFoundNetworks in "
                        "tests/differential/differential_test.cc"),
    "scenario": Campaign("scenario", "scenarios", "write the smallest part to a file in "
                         "tests/generate/found (--out)"),
    "control": Campaign("history", "histories", "write a unit test of what went wrong; "
                        "the number is another history as soon as messages change"),
}


def run_campaign(options, name, count):
    """Random networks, for example, from a number on that follows from the search's seed."""
    thing, things, keep = CAMPAIGNS[name]
    program = options.bin / f"{name}_campaign"
    log = options.results / f"{options.tier}.{program.name}.log"
    outcome = Outcome(name=program.name, log=log)
    first = options.search_seed % 10**12 * 10**6
    command = [str(program), str(first), str(count), "--jobs", str(options.jobs)]
    code, outcome.seconds = run_process(command, log, CAMPAIGN_SECONDS)
    log_text = log.read_text(errors="replace")
    for number, why in re.findall(rf"^{thing} (\d+): (.*)", log_text, re.M):
        outcome.failures.append((f"{thing} {number}", "\n".join((
            why, f"the smallest part that fails: {program} --shrink {number}",
            f"to keep it: {keep}"))))
    if code == 0 and not outcome.failures:
        outcome.passed = 1
        outcome.note = f"{things} {first} to {first + count - 1}"
    elif not outcome.failures:
        outcome.failures.append((program.name, f"{ending(code, CAMPAIGN_SECONDS)}\n{tail(log)}"))
    return outcome


def show(options, outcome):
    line = f"  {outcome.name:<44} {outcome.passed:>6} passed {len(outcome.failures):>4} failed"
    if outcome.skipped:
        line += f" {len(outcome.skipped)} skipped"
    line += f"  {outcome.seconds:7.1f} s  {outcome.note}"
    print(line.rstrip(), flush=True)
    for name in outcome.skipped:
        print(f"    skipped: {name}")
    for name, text in outcome.failures:
        lines = text.splitlines()
        print(f"    FAILED: {name}")
        for row in lines[:LOG_LINES_SHOWN]:
            cut = f" ... ({len(row)} columns)" if len(row) > LOG_COLUMNS_SHOWN else ""
            print(f"      {row[:LOG_COLUMNS_SHOWN]}{cut}")
        if len(lines) > LOG_LINES_SHOWN:
            print(f"      ... {len(lines) - LOG_LINES_SHOWN} more lines in {outcome.log}")
    if options.verbose and outcome.log and outcome.log.exists() and not outcome.failures:
        print(outcome.log.read_text(errors="replace"))
    sys.stdout.flush()


def in_one_line(tier, name, text):
    """A failure with its error, the first line at the margin after that of a traceback."""
    errors = [line for line in text.splitlines()
              if line[:1].strip() and not line.startswith("Traceback")] or [""]
    return f"{tier}: {name}: {errors[0][:LOG_COLUMNS_SHOWN]}\n"


def python_files(path):
    """Of a folder, or the one file."""
    return [file for file in ([path] if path.is_file() else sorted(path.glob("*test*.py")))
            if file.name.startswith("test_") or file.name.endswith("_test.py")]


def outcomes(options):
    programs = [options.bin / name for name in options.program]
    runs = [(run_gtest, program) for program in programs if program.exists()]
    runs += [(run_python, file) for name in options.python for file in python_files(ROOT / name)]
    with concurrent.futures.ThreadPoolExecutor(options.side_by_side) as pool:
        yield from pool.map(lambda run: run[0](options, run[1]), runs)
    targets = sorted((ROOT / options.fuzz).glob("*_fuzz")) if options.fuzz else []
    if targets and not options.filter:
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            yield from pool.map(lambda target: run_fuzz(options, target), targets)
    for name, campaign in CAMPAIGNS.items():
        count = getattr(options, campaign.things)
        if count and not options.filter:
            yield run_campaign(options, name, count)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tier", required=True)
    parser.add_argument("--results", type=pathlib.Path)
    parser.add_argument("--bin", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--filter", default="")
    parser.add_argument("--slow", type=int, default=1, help="factor on the time limits")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--program", nargs="*", default=[])
    parser.add_argument("--python", nargs="*", default=[])
    parser.add_argument("--side-by-side", type=int, default=1, metavar="N", help="programs and "
                        "unittest files run N at a time: for those that mostly wait")
    parser.add_argument("--fuzz", default="", help="folder of libFuzzer targets")
    parser.add_argument("--corpus", type=pathlib.Path, default=ROOT / "tests" / "fuzz" / "corpus")
    parser.add_argument("--search", type=int, default=0, metavar="SECONDS", help="of each "
                        "libFuzzer target; without it, they try their kept inputs only")
    for name, campaign in CAMPAIGNS.items():
        parser.add_argument(f"--{campaign.things}", type=int, default=0,
                            help=f"that {name}_campaign tries")
    parser.add_argument("--search-seed", type=int, default=1)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--report", help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    options = parse_arguments()
    if options.child:
        return child(options.child, options.report, options.filter)
    options.results.mkdir(parents=True, exist_ok=True)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end_sessions)
    passed = failed = skipped = 0
    names = []
    for outcome in outcomes(options):
        show(options, outcome)
        names += [in_one_line(options.tier, *failure) for failure in outcome.failures]
        passed += outcome.passed
        failed += len(outcome.failures)
        skipped += len(outcome.skipped)
    if passed + failed + skipped == 0:
        which = " that match" if options.filter else ""
        print(f"  the {options.tier} tier holds no tests{which}")
    (options.results / f"{options.tier}.tally").write_text(f"{passed} {failed} {skipped}\n")
    (options.results / f"{options.tier}.failed").write_text("".join(names))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
