// A workload that a hub runs again, and what of a result is reckoned from its start.
#include "emulator/node/hub.h"

namespace percs {
namespace {

// Of what is no sum over time, zero: it says nothing about a part of it.
std::vector<std::uint64_t> Values(NodeStats stats) {
  std::vector<std::uint64_t> values;
  stats.VisitTotals([&values](CounterTotal total, std::uint64_t value) {
    values.push_back(total == CounterTotal::kSum ? value : 0);
  });
  return values;
}

}  // namespace

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
  if (workload_) workload_->Start();
  if (hfi_.pending()) hfi_.HandOver();
  return absl::OkStatus();
}

// Before the counters of the whole run enter the digest.
void Hub::FoldWorkload(NodeResult* result) {
  result->workload_started = again_ ? again_->started : 0;
  const NodeStats before = again_ ? again_->before : NodeStats();
  DigestStream digest = again_ ? again_->digest : digest_;
  const std::vector<std::uint64_t> first = Values(before), now = Values(result->stats);
  for (std::size_t i = 0; i < now.size(); ++i) digest.Add(now[i] - first[i]);
  result->workload = digest.Finish();
  for (PortId port = 0; port < kLinkPorts; ++port) {
    result->link_flits[port] =
        result->stats.ports[port].sum().flits - before.ports[port].sum().flits;
  }
}

}  // namespace percs
