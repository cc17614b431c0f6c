#!/usr/bin/env python3
"""Changes one line of the engine at a time and sees that the differential tests notice.

Works on a copy of emulator/ and tests/ in a scratch folder; the sources stay as they are. First the
unchanged copy must pass; then every mutation below must make the campaign fail. Exit code 0: all
were caught. 1: one survived, or no longer applies to the sources (then choose another line).

usage: tests/differential/mutate.py [--only N] [--first N] [--networks N] [--seed N] [--scratch DIR]
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
COPIED = ["CMakeLists.txt", "emulator", "tests/CMakeLists.txt", "tests/support",
          "tests/differential"]
TIME_LIMIT_SECONDS = 300  # of one campaign; a mutant may well run for ever

# (what it breaks, file, the line as it stands there once, the line instead)
MUTATIONS = [
    ("round robin forgets who was served",
     "emulator/isr/isr.cc",
     "    out.pointer = winner;",
     "    out.pointer = -1;"),
    ("a head starts before no underrun is certain",
     "emulator/isr/isr.cc",
     "      return std::max(s.start - s.first * f, s.last() - (s.first + s.count - 1) * f);",
     "      return s.start - s.first * f;"),
    ("credits leave one flit too early",
     "emulator/isr/isr.cc",
     "    ReturnCredits(buffer, now + f, f, slots);",
     "    ReturnCredits(buffer, now, f, slots);"),
    ("a credit that exists just in time is not counted on",
     "emulator/isr/credit_counter.h",
     "      if (earliest == runs_.size() || runs_[earliest].start > t + taken * spacing) break;",
     "      if (earliest == runs_.size() || runs_[earliest].start >= t + taken * spacing) break;"),
    ("a packet never keeps its link after a split run",
     "emulator/isr/isr.cc",
     "  if (out.unfinished && out.busy_until == now && CanContinue"
     "(out)) return out.unfinished_index;",
     "  if (out.unfinished && out.busy_until > now && CanContinue("
     "out)) return out.unfinished_index;"),
    ("the slot set aside for a poison tail returns a credit",
     "emulator/isr/isr.cc",
     "    const int slots = m - (out.committed_spare ? 1 : 0);",
     "    const int slots = m;"),
    ("a flit that arrives the instant its link dies is kept",
     "emulator/isr/link_state.cc",
     "  while (lost < last.count && last.arrival(last.count - 1 - lost) >= now) ++lost;",
     "  while (lost < last.count && last.arrival(last.count - 1 - lost) > now) ++lost;"),
    ("a stall is counted only for a packet that has begun",
     "emulator/isr/isr.cc",
     "      stalled = true;",
     "      stalled = vc.owner != nullptr;"),
    ("parallel links are not taken in turn",
     "emulator/isr/router.cc",
     "  pointer = static_cast<std::uint8_t>(port + 1);",
     "  pointer = static_cast<std::uint8_t>(port);"),
    ("W does not limit ejection",
     "emulator/hfi/hfi.cc",
     "  w_out_free_ = at + packet->length * context_.parameters->w_flit_time;",
     "  w_out_free_ = at + context_.parameters->w_flit_time;"),
    ("a mark is not sent after a tail that has gone on",
     "emulator/isr/link_state.cc",
     "  if (gone.source != mark.source || gone.sequence != mark.sequence) return;",
     "  if (gone.source != mark.source || gone.sequence == mark.sequence) return;"),
    ("the HFI serves its ports without taking turns",
     "emulator/hfi/hfi.cc",
     "    last_port_ = index;",
     "    last_port_ = -1;"),
]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", type=int, help="this mutation alone, counted from 1")
    parser.add_argument("--first", type=int, default=len(MUTATIONS), help="only the first N")
    parser.add_argument("--networks", type=int, default=600, help="random networks per test")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first network")
    parser.add_argument("--jobs", type=int, default=int(os.environ.get("PERCS_JOBS", 2)))
    parser.add_argument("--scratch", type=pathlib.Path, help="keep the copy and its build here")
    return parser.parse_args()


def make_copy(scratch):
    """Writes only what differs: a kept scratch folder compiles again what a mutation changed."""
    for name in COPIED:
        source = ROOT / name
        for path in sorted(source.rglob("*")) if source.is_dir() else [source]:
            target = scratch / path.relative_to(ROOT)
            if path.is_dir() or (target.exists() and target.read_bytes() == path.read_bytes()):
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)


def run(command, scratch, log, limit=None, environment=None):
    with open(scratch / log, "wb") as output:
        try:
            return subprocess.run(command, cwd=scratch, stdin=subprocess.DEVNULL, stdout=output,
                                  stderr=subprocess.STDOUT, timeout=limit, env=environment,
                                  check=False).returncode
        except subprocess.TimeoutExpired:
            return None


def build(scratch, jobs):
    command = ["cmake", "--build", "build", "-j", str(jobs), "--target", "differential_test"]
    if run(command, scratch, "build.log") != 0:
        print((scratch / "build.log").read_text(errors="replace")[-4000:])
        sys.exit("mutate: the copy does not compile")


def campaign(scratch, options):
    """Returns ("" if it passed, otherwise how it failed)."""
    environment = dict(os.environ, PERCS_SEED=str(options.seed),
                       PERCS_NETWORKS=str(options.networks), PERCS_SHRINK="0")
    command = ["build/bin/differential_test", "--gtest_filter=Differential.*", "--gtest_fail_fast"]
    code = run(command, scratch, "campaign.log", TIME_LIMIT_SECONDS, environment)
    if code == 0:
        return ""
    if code is None:
        return f"ran for more than {TIME_LIMIT_SECONDS} s"
    text = (scratch / "campaign.log").read_text(errors="replace")
    told = [line for line in text.splitlines()
            if line.startswith("network ") or line.startswith("flap ") or ": bug: " in line]
    return told[0][:300] if told else f"exit code {code}"


def apply(path, old, new):
    text = path.read_text()
    if text.count(old + "\n") != 1:
        return False
    path.write_text(text.replace(old + "\n", new + "\n"))
    return True


def survivors(scratch, options):
    chosen = list(enumerate(MUTATIONS, 1))[:options.first]
    if options.only:
        chosen = chosen[options.only - 1:options.only]
    missed = 0
    for number, (title, name, old, new) in chosen:
        path, start = scratch / name, time.monotonic()
        original = path.read_text()
        if not apply(path, old, new):
            verdict = f"DOES NOT APPLY: {name} must hold this line once: {old.strip()}"
            missed += 1
        else:
            build(scratch, options.jobs)
            caught = campaign(scratch, options)
            verdict = f"caught: {caught}" if caught else "SURVIVED"
            missed += not caught
            path.write_text(original)
        print(f"{number:2} {title} ({time.monotonic() - start:.0f} s)\n   {verdict}", flush=True)
    return missed, len(chosen)


def main():
    options = parse_arguments()
    scratch = options.scratch or pathlib.Path(tempfile.mkdtemp(prefix="percs-mutate-"))
    scratch.mkdir(parents=True, exist_ok=True)
    try:
        make_copy(scratch)
        configure = ["cmake", "-S", ".", "-B", "build", "-G", "Ninja", "-DPERCS_SHELL=OFF",
                     "-DPERCS_BENCH=OFF"]
        if run(configure, scratch, "configure.log") != 0:
            sys.exit((scratch / "configure.log").read_text(errors="replace"))
        build(scratch, options.jobs)
        failure = campaign(scratch, options)
        if failure:
            sys.exit(f"mutate: the unchanged engine fails: {failure}")
        missed, count = survivors(scratch, options)
        print(f"{count - missed} of {count} mutations caught")
        return 1 if missed else 0
    finally:
        if not options.scratch:
            shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
