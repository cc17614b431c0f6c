// What one node has to say at the end of a run, or when a daemon reports it.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "emulator/base/digest.h"
#include "emulator/chip/fault_tally.h"
#include "emulator/clock/hub_clock.h"
#include "emulator/metrics/node_stats.h"
#include "emulator/metrics/phase_meter.h"
#include "emulator/scenario/loop_workload.h"
#include "emulator/scenario/scenario.h"
#include "emulator/scenario/window_program.h"

namespace percs {

// Result of one node; merged in node order.
struct NodeResult {
  NodeId node = 0;
  Digest digest;
  NodeStats stats;
  Time last_event = 0;  // of its last foreground event
  std::vector<FailedMessage> failed;
  std::vector<RankResult> ranks;
  std::vector<BladeProgramResult> programs;
  CollectiveResult collective;
  std::vector<CauTaskResult> cau_tasks;
  std::vector<WindowProgramResult> window_programs;
  // By epoch: when this hub first routed a packet by a table entry that the epoch changed. Not in
  // the digest (every delivery already is).
  std::vector<std::pair<Epoch, Time>> first_rerouted;
  std::vector<FaultTally>
      tallies;                   // what faults cost at this node; not in the digest, like all below
  std::vector<PhasePart> phase;  // of a measurement phase, in order
  Time workload_started = 0;     // the last time
  Digest workload;  // deliveries and counters since the workload began the last time, by its time
  std::array<std::uint64_t, kLinkPorts> link_flits{};  // sent since then
  std::vector<ClockSample> clock;  // at every period of the global clock; in the digest of the run
  std::uint64_t credits_missing =
      0;  // after a drained run, over all live links: a leak if not zero
  std::uint64_t flits_out_of_order =
      0;  // runs of flits that did not continue where their packet was
  std::uint64_t flits_without_credit = 0;  // runs of flits that came in without a free slot
  std::uint64_t vcs_out_of_place = 0;  // packets that came in on a VC out of its place (rule 10)
};

}  // namespace percs
