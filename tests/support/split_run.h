// Runs a scenario as several processes would, inside one: a Fabric per process, batches handed over
// in a random order and as late as rule 5 of docs/semantics.md allows. The cheapest test of the
// determinism contract across placements.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "emulator/sim/run.h"

namespace percs::test {

struct SplitOptions {
  int processes = 4;  // with nodes; network management gets one of its own
  // Process of a node; contiguous and as even as possible if not set.
  std::function<int(NodeId)> process_of;
  std::uint64_t seed = 1;  // of the order of batches
  // By chance, each process runs as far as nothing can reach it; else all run one lookahead.
  bool reaches_far = true;
  // Sees every outbox before it is delivered, and may spoil it.
  std::function<void(int from, int to, Outbox&)> tamper;
  // In order of time: a process dies, or another takes its place. The losses are numbered in this
  // order.
  struct Change {
    Time at = 0;
    int process = 0;
    std::uint32_t rejoins = 0;  // number of the loss; 0: it dies
  };
  std::vector<Change> changes;
};

// Over this many processes, all else by default.
inline SplitOptions Processes(int processes) {
  SplitOptions options;
  options.processes = processes;
  return options;
}

absl::StatusOr<RunResult> SplitRun(const Scenario& scenario, const SplitOptions& options);

}  // namespace percs::test
