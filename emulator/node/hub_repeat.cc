// A workload that a hub runs again, and results counted from its start.
#include "emulator/node/hub.h"

namespace percs {

absl::Status CheckRepeatable(const Scenario& scenario, const Topology& topology) {
  if (topology.blades() == 0 && (std::holds_alternative<AllToAllWorkload>(scenario.workload) ||
                                 std::holds_alternative<PatternWorkload>(scenario.workload) ||
                                 std::holds_alternative<ScriptedWorkload>(scenario.workload))) {
    return absl::OkStatus();
  }
  return absl::UnimplementedError(
      "only all_to_all, pattern and packets, without blades, can run again");
}

absl::Status Hub::Repeat(const Scenario& scenario, const Topology& topology, Time at) {
  if (absl::Status status = CheckRepeatable(scenario, topology); !status.ok()) return status;
  PERCS_CHECK(context_.now <= at);
  again_ = std::make_unique<RepeatedWorkload>();
  again_->started = at;
  again_->before = stats();
  hfi_.NumberAnew();
  if (measure_to_ != kNever) {
    measure_from_ += at;
    measure_to_ += at;
  }
  if (absl::Status status = MakeWorkload(scenario, topology); !status.ok()) return status;
  context_.now = at;
  if (congestion_) congestion_->BeginAgain(at);
  if (workload_) workload_->Start();
  if (hfi_.pending()) hfi_.HandOver();
  return absl::OkStatus();
}

// Before the counters of the whole run enter the digest.
void Hub::FoldWorkload(NodeResult* result) {
  result->workload_started = again_ ? again_->started : 0;
  DigestStream digest = again_ ? again_->digest : digest_;
  // Values that are not sums over time become zero: they say nothing about a part of the run.
  const auto fold = [&digest](CounterTotal total, std::uint64_t now, auto... before)
      __attribute__((always_inline)) {
    digest.Add(total == CounterTotal::kSum ? (now - ... - before) : 0);
  };
  const NodeStats& stats = result->stats;
  if (again_) {
    NodeStats::VisitTotals(fold, stats, again_->before);
  } else {
    NodeStats::VisitTotals(fold, stats);
  }
  result->workload = digest.Finish();
  for (PortId port = 0; port < kLinkPorts; ++port) {
    result->link_flits[port] = stats.ports[port].sum(&VcStats::flits);
    if (again_) result->link_flits[port] -= again_->before.ports[port].sum(&VcStats::flits);
  }
}

}  // namespace percs
