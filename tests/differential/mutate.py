#!/usr/bin/env python3
"""Changes one line of the engine at a time and sees that the differential tests notice.

Works on a copy of the engine and its differential tests; the sources stay as they are. First the
unchanged copy must pass; then every mutation below must make the campaign fail. tests/run does it
in the engines tier (tests/engines/test_mutations.py); by hand one mutation can be looked at alone.
Exit code 0: all were caught. 1: one survived, or no longer applies (then choose another line).
"""

import argparse
import collections
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
COPIED = ["CMakeLists.txt", "emulator", "tests/CMakeLists.txt", "tests/support",
          "tests/differential", "tests/soak"]
TIME_LIMIT_SECONDS = 300  # of one campaign; a mutant may well run for ever

# What it breaks, in which file, the line as it stands there once, and the line instead.
Mutation = collections.namedtuple("Mutation", "title file old new")

MUTATIONS = [Mutation(*m) for m in (
    ("round robin forgets which VC was served",
     "emulator/isr/isr.cc",
     "      out.last_vc = v;",
     "      out.last_vc = -1;"),
    ("round robin forgets which input was served",
     "emulator/isr/isr.cc",
     "      vc.pointer = vc.owner ? vc.owner_index : requesters.FirstAfter(vc.pointer);",
     "      vc.pointer = vc.owner ? vc.owner_index : requesters.FirstAfter(-1);"),
    ("a head starts before no underrun is certain",
     "emulator/isr/isr.cc",
     "      return std::max(s.start - s.first * f, s.last() - (s.first + s.count - 1) * f);",
     "      return s.start - s.first * f;"),
    ("credits leave one flit too early",
     "emulator/isr/commitment.h",
     "    ReturnCredits(buffer, start + f, f, slots);",
     "    ReturnCredits(buffer, start, f, slots);"),
    ("a credit that exists just in time is not counted on",
     "emulator/isr/credit_counter.cc",
     "    if (earliest == count_ || runs_[earliest].start > t + taken * spacing) break;",
     "    if (earliest == count_ || runs_[earliest].start >= t + taken * spacing) break;"),
    ("a packet never keeps its link after a split run",
     "emulator/isr/isr.cc",
     "  if (out.unfinished && out.busy_until == now && CanContinue"
     "(out)) return out.unfinished_index;",
     "  if (out.unfinished && out.busy_until > now && CanContinue("
     "out)) return out.unfinished_index;"),
    ("what is sent after the latency fell overtakes what is under way",
     "emulator/isr/link_level.cc",
     "  Time start = std::max(context_.now, link_levels_[port]->under_way - out.wire);",
     "  Time start = context_.now;"),
    ("the slot set aside for a poison tail returns a credit",
     "emulator/isr/commitment.h",
     "    const int slots = count - (out.committed_spare ? 1 : 0);",
     "    const int slots = count;"),
    ("a flit that arrives the instant its link dies is kept",
     "emulator/isr/link_state.cc",
     "  while (lost < last.count && last.arrival(last.count - 1 - lost) >= now) ++lost;",
     "  while (lost < last.count && last.arrival(last.count - 1 - lost) > now) ++lost;"),
    ("a stall is counted only for a packet that has begun",
     "emulator/isr/isr.cc",
     "        stalled |= 1u << v;",
     "        if (vc.owner) stalled |= 1u << v;"),
    ("parallel links are not taken in turn",
     "emulator/isr/router.cc",
     "  pointer = static_cast<std::uint8_t>(port + 1);",
     "  pointer = static_cast<std::uint8_t>(port);"),
    ("round robin over middle supernodes stands still",
     "emulator/isr/source_route.cc",
     "            static_cast<std::uint16_t>(middle + 1);",
     "            static_cast<std::uint16_t>(middle);"),
    ("the adaptive choice forgets how long direct routes are",
     "emulator/isr/source_route.cc",
     "constexpr std::uint64_t kDirectHops = 3, kIndirectHops = 5;",
     "constexpr std::uint64_t kDirectHops = 1, kIndirectHops = 5;"),
    ("W does not limit ejection",
     "emulator/hfi/hfi.cc",
     "    w_out_free_ = at + packet->length * context_.parameters->w_flit_time;",
     "    w_out_free_ = at + context_.parameters->w_flit_time;"),
    ("a mark is not sent after a tail that has gone on",
     "emulator/isr/link_state.cc",
     "  if (gone.source != mark.source || gone.sequence != mark.sequence) return;",
     "  if (gone.source != mark.source || gone.sequence == mark.sequence) return;"),
    ("a run goes on over a corrupted flit",
     "emulator/isr/isr.cc",
     "  if (out.errors) wanted = FlitsBeforeError(port, wanted);",
     "  if (out.errors && !p->begun) wanted = FlitsBeforeError(port, wanted);"),
    ("a replay round is not a number of whole flits",
     "emulator/isr/link_level.cc",
     "  return (f + out.wire + nak + f - 1) / f * f;",
     "  return f + out.wire + nak;"),
    ("a link is given up although it went down before",
     "emulator/node/hub.cc",
     "      if (isr_.output(item->port).generation != item->epoch) break;",
     ""),
    ("a commitment that runs when lanes are lost is slowed down",
     "emulator/isr/link_level.cc",
     "  return level && level->changed_under == out.busy_until ? "
     "level->flit_time_before : out.flit_time;",
     "  return level ? out.flit_time : out.flit_time;"),
    ("fronts do not look again when the rate changes",
     "emulator/isr/link_level.cc",
     "    if (!front || front->begun) continue;",
     "    if (front || !front) continue;"),
    ("the winner of an arbitration loses too",
     "emulator/isr/port_counters.cc",
     "        static_cast<std::uint64_t>(losers - won);",
     "        static_cast<std::uint64_t>(losers - won + won);"),
    ("the HFI serves its ports without taking turns",
     "emulator/hfi/hfi.cc",
     "    last_port_ = index;",
     "    last_port_ = -1;"),
    ("management goes ahead of data twice in a row",
     "emulator/isr/service_port.cc",
     "  if (out.committed_port == kServicePort && DataCanBeGranted(out)) return false;",
     "  if (out.committed_port == kNoPort && DataCanBeGranted(out)) return false;"),
    ("a management packet waits longer than it may",
     "emulator/isr/service_port.cc",
     "waiting.front()->segment.start + context_.parameters->service_wait <= context_.now) {",
     "waiting.front()->segment.start + context_.parameters->service_wait < context_.now) {"),
    ("a multicast packet waits for the one ahead of it",
     "emulator/isr/isr.cc",
     "  const bool front = !p->draining && (p->out == kReplication || "
     "buffer.Front(p->out) == nullptr);",
     "  const bool front = !p->draining && buffer.Front(p->out) == nullptr;"),
)]


def applies(mutation):
    """Whether the sources still hold the line, once."""
    return (ROOT / mutation.file).read_text().count(mutation.old + "\n") == 1


class Copy:
    """The engine and its differential tests in a folder of their own, to be changed and built."""

    def __init__(self, folder, jobs=2, networks=600, seed=1):
        self.folder, self.jobs = pathlib.Path(folder), jobs
        self.environment = dict(os.environ, PERCS_SEED=str(seed), PERCS_NETWORKS=str(networks),
                                PERCS_SHRINK="0")

    def prepare(self):
        """Builds the unchanged copy and shows that the campaign passes. RuntimeError if not."""
        self._write()
        self._run(["cmake", "-S", ".", "-B", "build", "-G", "Ninja", "-DPERCS_SHELL=OFF",
                   "-DPERCS_BENCH=OFF"], "configure.log")
        self._build()
        failure = self._campaign()
        if failure:
            raise RuntimeError(f"the unchanged engine fails: {failure}")

    def failure_with(self, mutation):
        """How the campaign fails with the mutation in place; "" if it does not notice."""
        path = self.folder / mutation.file
        original = path.read_text()
        path.write_text(original.replace(mutation.old + "\n", mutation.new + "\n"))
        try:
            self._build()
            return self._campaign()
        finally:
            path.write_text(original)

    def _write(self):
        """Only what differs, so that a kept folder compiles again only what changed."""
        wanted = set()
        for name in COPIED:
            source = ROOT / name
            for path in source.rglob("*") if source.is_dir() else [source]:
                if path.is_dir():
                    continue
                target = self.folder / path.relative_to(ROOT)
                wanted.add(target)
                if target.exists() and target.read_bytes() == path.read_bytes():
                    continue
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)
        for name in COPIED:
            for path in (self.folder / name).rglob("*"):
                if path.is_file() and path not in wanted:
                    path.unlink()

    def _execute(self, command, log, limit=None):
        with open(self.folder / log, "wb") as output:
            return subprocess.run(command, cwd=self.folder, stdin=subprocess.DEVNULL,
                                  stdout=output, stderr=subprocess.STDOUT, timeout=limit,
                                  env=self.environment, check=False).returncode

    def _text(self, log):
        return (self.folder / log).read_text(errors="replace")

    def _run(self, command, log):
        if self._execute(command, log) != 0:
            raise RuntimeError(f"{' '.join(command)}\n{self._text(log)[-4000:]}")

    def _build(self):
        self._run(["cmake", "--build", "build", "-j", str(self.jobs), "--target",
                   "differential_test"], "build.log")

    def _campaign(self):
        command = ["build/bin/differential_test", "--gtest_filter=Differential.*",
                   "--gtest_fail_fast"]
        try:
            code = self._execute(command, "campaign.log", TIME_LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            return f"ran for more than {TIME_LIMIT_SECONDS} s"
        if code == 0:
            return ""
        told = [line for line in self._text("campaign.log").splitlines()
                if line.startswith(("network ", "flap ")) or ": bug: " in line]
        return told[0][:300] if told else f"exit code {code}"


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", type=int, help="this mutation alone, counted from 1")
    parser.add_argument("--networks", type=int, default=600, help="random networks per test")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first network")
    parser.add_argument("--jobs", type=int, default=int(os.environ.get("PERCS_JOBS", 2)))
    parser.add_argument("--scratch", type=pathlib.Path, help="keep the copy and its build here")
    return parser.parse_args()


def main():
    options = parse_arguments()
    scratch = options.scratch or pathlib.Path(tempfile.mkdtemp(prefix="percs-mutate-"))
    scratch.mkdir(parents=True, exist_ok=True)
    copy = Copy(scratch, options.jobs, options.networks, options.seed)
    missed = tried = 0
    try:
        copy.prepare()
        for number, mutation in enumerate(MUTATIONS, 1):
            if options.only not in (None, number):
                continue
            start, failure = time.monotonic(), ""
            if not applies(mutation):
                verdict = f"DOES NOT APPLY: {mutation.file} must hold once: {mutation.old.strip()}"
            else:
                failure = copy.failure_with(mutation)
                verdict = f"caught: {failure}" if failure else "SURVIVED"
            tried, missed = tried + 1, missed + (not failure)
            print(f"{number:2} {mutation.title} ({time.monotonic() - start:.0f} s)\n   {verdict}",
                  flush=True)
    finally:
        if not options.scratch:
            shutil.rmtree(scratch, ignore_errors=True)
    print(f"{tried - missed} of {tried} mutations caught")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
