// What daemons report at the end of a run: the results of their nodes, or the wait edges of their
// packets and programs in a deadlock.
//
// THREAD: calls do not overlap.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "emulator/chip/wait_edge.h"
#include "emulator/sim/fabric.h"
#include "percs/v1/sync.pb.h"

namespace percs {

class FinalAnswers {
 public:
  // Lives as long as this.
  explicit FinalAnswers(const Placement& placement) : placement_(placement) {}

  void Await(std::uint32_t process) { awaited_.insert(process); }
  bool Awaits(std::uint32_t process) const { return awaited_.contains(process); }
  bool awaits_any() const { return !awaited_.empty(); }
  // Nothing more is awaited.
  void Abandon() { awaited_.clear(); }

  // INVALID_ARGUMENT for what cannot be read, and for a node that the process does not have.
  // Results of `lost` nodes are left out.
  absl::Status OnResults(std::uint32_t process, const v1::NodeResults& results,
                         const std::set<NodeId>& lost);
  absl::Status OnWaitEdges(std::uint32_t process, const v1::WaitEdges& edges);

  std::vector<NodeResult> TakeResults() { return std::move(results_); }
  std::size_t results() const { return results_.size(); }
  const std::vector<WaitEdge>& wait_edges() const { return wait_edges_; }
  // Of all processes that gave wait edges, the time of the last thing that a result shows.
  Time last_event() const { return last_event_; }
  // Programs of blades that wait, and for what; sorted.
  std::vector<std::string> Blocked() const;

 private:
  const Placement& placement_;
  std::set<std::uint32_t> awaited_;  // processes
  std::vector<NodeResult> results_;
  std::vector<WaitEdge> wait_edges_;
  std::vector<std::string> blocked_;
  Time last_event_ = 0;
};

}  // namespace percs
