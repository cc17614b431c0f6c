#!/usr/bin/env python3
"""Changes one line of the engine at a time and sees that the differential tests notice.

Works on a copy of the engine and its differential tests; the sources stay as they are. First the
unchanged copy must pass; then every mutation below must make the campaign fail. tests/run does it
in the engines tier (tests/engines/test_mutations.py); by hand one mutation can be looked at alone.
Exit code 0: all were caught. 1: one survived, or no longer applies (then choose another line).
"""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import queue
import shutil
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import mutation_trial  # noqa: E402

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
     "    if (earliest == end || !earliest->known ||"
     " earliest->start > t + taken * spacing) break;",
     "    if (earliest == end || !earliest->known ||"
     " earliest->start >= t + taken * spacing) break;"),
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
    ("a congestion bit is set one flit late",
     "emulator/isr/congestion.cc",
     "        flits >= static_cast<std::uint32_t>(parameters_.congestion_threshold) + twice_mean;",
     "        flits > static_cast<std::uint32_t>(parameters_.congestion_threshold) + twice_mean;"),
    ("a congested link is compared with once the mean of the others",
     "emulator/isr/congestion.cc",
     "others == 0 ? 0 : 2 * (all - flits) / others;",
     "others == 0 ? 0 : (all - flits) / others;"),
    ("a packet goes over two congested links",
     "emulator/isr/source_route.cc",
     "      if (behind_other.congested) return false;",
     ""),
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
     "!buffer.HasFront(p->out));",
     "  const bool front = !p->draining && !buffer.HasFront(p->out);"),
)]


def applies(mutation):
    """Whether the sources still hold the line, once."""
    return (mutation_trial.ROOT / mutation.file).read_text().count(mutation.old + "\n") == 1


class Mutants:
    """Tries mutations in copies of the sources, `jobs` at a time."""

    def __init__(self, folder, jobs=2, networks=600, seed=1):
        """RuntimeError if the unchanged sources do not build and pass."""
        environment = {"PERCS_SEED": str(seed), "PERCS_NETWORKS": str(networks),
                       "PERCS_SHRINK": "0"}
        alone = [mutation.file for mutation in MUTATIONS if mutation.file.endswith(".cc")]
        self.free = queue.SimpleQueue()
        self.pool = concurrent.futures.ThreadPoolExecutor(jobs)
        for number in range(jobs):  # the second finds what the first compiled in the cache
            self.free.put(mutation_trial.prepare(pathlib.Path(folder) / str(number),
                                                 "differential_test", "Differential.*", alone, jobs,
                                                 environment))

    def close(self):
        """Waits for what is under way; what has not begun is left out."""
        self.pool.shutdown(cancel_futures=True)

    def submit(self, mutation):
        """A future of (outcome, what noticed it, seconds); see Trial.outcome."""
        return self.pool.submit(self._outcome, mutation)

    def _outcome(self, mutation):
        trial, start = self.free.get(), time.monotonic()
        try:
            outcome, why = trial.outcome(
                mutation.file, lambda text: text.replace(mutation.old + "\n", mutation.new + "\n"))
        finally:
            self.free.put(trial)
        return outcome, why, time.monotonic() - start


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
    chosen = [(number, mutation) for number, mutation in enumerate(MUTATIONS, 1)
              if options.only in (None, number)]
    caught = 0
    try:
        mutants = Mutants(scratch, options.jobs, options.networks, options.seed)
        futures = [mutants.submit(mutation) for _, mutation in chosen]
        for (number, mutation), future in zip(chosen, futures):
            outcome, why, seconds = future.result()
            if not applies(mutation):
                outcome, why = "DOES NOT APPLY", f"{mutation.file} must hold once: {mutation.old}"
            caught += outcome == "killed"
            print(f"{number:2} {mutation.title} ({seconds:.0f} s)\n   {outcome}: {why}", flush=True)
    finally:
        if not options.scratch:
            shutil.rmtree(scratch, ignore_errors=True)
    print(f"{caught} of {len(chosen)} mutations caught")
    return 0 if caught == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
