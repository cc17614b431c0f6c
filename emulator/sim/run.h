// A scenario from start to end inside one process, and the result every placement prints.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "emulator/clock/clock_report.h"
#include "emulator/metrics/latency_batches.h"
#include "emulator/metrics/phase_meter.h"
#include "emulator/sim/fabric.h"

namespace percs {

// The measurement phase of a pattern: from the end of `warm_up`, for `measure` or until `stop_at`.
// Of one with `auto_warm_up`, the steady part of it, and so are the bytes measured and the packet
// latencies in the totals of the run.
struct Measurement {
  Time duration = 0;          // 0: nothing was measured
  std::uint64_t senders = 0;  // hubs that offered anything in it
  // Less than kAcceptedShare of the bytes offered were accepted in it, or of its packets some had
  // not arrived at the end of a drain, and what was dropped in the whole run does not explain that.
  // Packets then queue at their sources for ever longer, and their latency says how long was
  // measured, not how fast the network is. Multicast, whose copies all count as accepted, never
  // says so.
  bool saturated = false;

  static constexpr double kAcceptedShare = 0.95;

  // Packets created in the phase, and those of them that had not arrived when the run ended. Known
  // only of a pattern with a drain.
  std::uint64_t created = 0, undelivered = 0;

  // Of the mean latency of packets created in the phase, by batch means.
  BatchMeans latency;
  // With `auto_warm_up`: what the rule left out, from the start of the run on, in whole parts of
  // the phase. Unstable: it found no steady part; then this is what it left out at most, and
  // latencies say nothing.
  Time warm_up = 0;
  bool unstable = false;
  bool has_latency() const { return !saturated && !unstable; }
  // Bytes that a hub accepted in the phase, over the hubs that some hub sends to: the least, and
  // Jain's index of fairness, (sum x)^2 / (n sum x^2): 1 if all accepted the same, 1/n if one hub
  // accepted everything. 0 of no receivers.
  std::uint64_t receivers = 0, least_accepted_bytes = 0;
  double fairness = 0;
  // The same of what left the HFIs of the sending hubs for the network.
  std::uint64_t least_injected_bytes = 0;
  double source_fairness = 0;

  PathLatencies paths;  // of the packets created in the phase
};

// Merged over nodes in node order; the same for every placement of the same scenario.
// WIDE: data: one member for each part of a result.
struct RunResult {
  std::string scenario;
  Digest digest;
  Time virtual_time = 0;  // last foreground event
  std::uint64_t nodes = 0;
  NodeStats total;
  std::uint64_t flit_hops = 0;  // over LL, LR and D links
  std::uint64_t packet_hops = 0;
  std::uint64_t hfi_flits = 0;                          // into HFI ports, reported apart
  std::array<double, kLinkClasses> utilisation_mean{};  // of connected links, share of the run
  std::array<double, kLinkClasses> utilisation_max{};
  std::array<std::uint64_t, kLinkClasses> links{};  // directed
  std::vector<FailedMessage> failed;
  std::vector<RankResult> ranks;
  std::vector<BladeProgramResult> programs;          // of blades, in node order
  CollectiveResult collective;                       // of all tasks
  std::vector<CauTaskResult> cau_tasks;              // by node, then tree
  std::vector<WindowProgramResult> window_programs;  // in the order of the workload
  std::vector<Reroute> reroutes;
  Measurement measurement;  // its bytes are in `total`
  ClockReport clock;
  std::vector<TreeStatus> trees;    // by number
  std::vector<FaultStatus> faults;  // in the order of their creation
  std::vector<FabricEvent> events;  // in process only, those that are still kept
  std::vector<FaultTally> tallies;  // what they cost, by their numbers
  Digest
      workload;  // by the time since it began: the same for the same workload on an intact fabric
  Time workload_started = 0;           // the last time
  std::vector<LostHubs> lost;          // in the order of their loss; they count for nothing
  std::vector<RejoinedHubs> rejoined;  // likewise; these count from then on
  std::uint64_t windows = 0;
  std::vector<std::string> violations;  // what the checkers found; empty is right
};

// Progress of a long run; called between windows, at most every `windows` windows.
struct RunProgress {
  Time now = 0;
  std::uint64_t windows = 0;
  std::uint64_t packets_delivered = 0;
};

// Something from outside at a virtual time: everything before it has happened, nothing at or after
// it.
struct TimedCommand {
  Time at = 0;
  std::function<absl::Status(Fabric& fabric, Time at)> act;
};

struct RunOptions {
  int threads = 1;
  const Executor* executor = nullptr;  // required when threads > 1
  std::function<void(const RunProgress&)> progress;
  std::function<bool()> cancelled;
  std::uint64_t progress_every_windows = 16;
  // After Start, after every window, and at the end: what can be seen then. If it returns true,
  // somebody waits for the next time, and the next window is one lookahead long. The result is the
  // same but for the number of windows.
  std::function<bool(const Fabric& fabric, std::uint64_t windows, bool ended)> watch;
  DeliveryObserver on_delivery;               // every delivery; one thread only
  std::optional<TraceSelection> trace;        // packets to follow
  std::vector<TraceEvent>* traced = nullptr;  // ... and what became of them, also of a deadlock
  // What ranks did, at most kRankSlicesMax slices of each node; also of a deadlock.
  std::vector<RankSlice>* rank_slices = nullptr;
  // What SPEs did by DMA, at most cell::kDmaSlicesMax commands of each blade; likewise.
  std::vector<NodeDmaSlice>* dma_slices = nullptr;
  const TableSet* tables = nullptr;  // of epoch 1, proven first; else as planned
  // In order of time. What one of them refuses is refused, and the run continues; it ends no sooner
  // than the last.
  std::vector<TimedCommand> commands;
  // When everything is done, faults included, the workload runs again, on the fabric as it is
  // then: with all round-robin arbiters reset or not. RunResult::workload is then that of the
  // second time.
  enum class Again : std::uint8_t { kNo, kWithArbitersReset, kAsItIs };
  Again again = Again::kNo;
  std::function<void(const NodeResult&)> on_result;  // every node's result, in node order
};

// Runs to the end. DEADLINE/FAILED_PRECONDITION style errors: deadlock with the wait-for cycle
// (FAILED_PRECONDITION), cancelled (CANCELLED).
absl::StatusOr<RunResult> RunScenario(const Scenario& scenario, const RunOptions& options);

// Merges node results (any order; sorted here) and checks conservation, which nobody can tell when
// hubs were lost.
RunResult MergeResults(const Scenario& scenario, const Topology& topology,
                       std::vector<NodeResult> nodes, std::vector<Reroute> reroutes,
                       std::uint64_t windows, const LossRecord& losses = {});
// FAILED_PRECONDITION: when the last thing happened, what is left, the wait-for cycle, and the
// programs of blades that wait. `edges` in any order of nodes.
absl::Status DeadlockError(const Topology& topology, const WorkLeft& left, Time last_event,
                           std::vector<WaitEdge> edges, const std::vector<std::string>& blocked);
// The wait-for cycle among `edges`, as text, or "" if there is none.
std::string DescribeDeadlock(const Topology& topology, const std::vector<WaitEdge>& edges);

}  // namespace percs
