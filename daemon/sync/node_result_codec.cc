#include "daemon/sync/node_result_codec.h"

#include "fmt/format.h"
#include "proto/scenario/blades.h"
#include "proto/scenario/clock_codec.h"
#include "proto/scenario/collective.h"
#include "proto/scenario/trees.h"
#include "proto/scenario/windows.h"

namespace percs {
namespace {

// NodeStats can only be visited for writing.
template <typename F>
void VisitConst(const NodeStats& stats, F&& f) {
  const_cast<NodeStats&>(stats).Visit([&f](const std::uint64_t& v) { f(v); });
}

int CountersPerNode() {
  static const int count = [] {
    int n = 0;
    NodeStats stats;
    stats.Visit([&n](std::uint64_t&) { ++n; });
    return n;
  }();
  return count;
}

absl::StatusOr<DropReason> ReasonByName(const std::string& name) {
  for (int i = 0; i < kDropReasons; ++i) {
    if (name == DropReasonName(static_cast<DropReason>(i))) return static_cast<DropReason>(i);
  }
  return absl::InvalidArgumentError(fmt::format("drop reason \"{}\" is not known", name));
}

}  // namespace

void PackStats(const NodeStats& stats, google::protobuf::RepeatedField<std::uint64_t>* packed) {
  packed->Reserve(CountersPerNode());
  VisitConst(stats, [&](std::uint64_t v) { packed->Add(v); });
}

absl::StatusOr<NodeStats> UnpackStats(
    const google::protobuf::RepeatedField<std::uint64_t>& packed) {
  if (packed.size() != CountersPerNode()) {
    return absl::InvalidArgumentError(fmt::format("a hub with {} counters; this version has {}",
                                                  packed.size(), CountersPerNode()));
  }
  NodeStats stats;
  int i = 0;
  stats.Visit([&](std::uint64_t& v) { v = packed[i++]; });
  return stats;
}

void PackTallies(const std::vector<FaultTally>& tallies, PackedTallies* packed) {
  for (const FaultTally& tally : tallies) {
    for (const std::uint64_t v : {std::uint64_t{tally.fault}, tally.losses.lost,
                                  tally.losses.resent, tally.losses.replayed}) {
      packed->Add(v);
    }
  }
}

absl::StatusOr<std::vector<FaultTally>> UnpackTallies(const PackedTallies& packed) {
  if (packed.size() % 4 != 0) {
    return absl::InvalidArgumentError(
        fmt::format("{} numbers of tallies of faults; each has 4", packed.size()));
  }
  std::vector<FaultTally> tallies;
  for (int i = 0; i < packed.size(); i += 4) {
    tallies.push_back(
        {static_cast<std::uint32_t>(packed[i]), {packed[i + 1], packed[i + 2], packed[i + 3]}});
  }
  return tallies;
}

void PackResult(const NodeResult& result, v1::NodeResult* message) {
  message->set_node(result.node);
  message->set_digest_high(result.digest.high);
  message->set_digest_low(result.digest.low);
  PackStats(result.stats, message->mutable_stats());
  message->set_last_event(result.last_event);
  for (const FailedMessage& f : result.failed) {
    v1::FailedMessage* m = message->add_failed();
    m->set_source(f.source);
    m->set_destination(f.destination);
    m->set_message(f.message);
    m->set_bytes(f.bytes);
    m->set_reason(DropReasonName(f.reason));
    m->set_at(f.at);
  }
  for (const RankResult& r : result.ranks) {
    v1::RankResult* m = message->add_ranks();
    m->set_rank(r.rank);
    m->set_finished(r.finished);
    m->set_calc(r.calc);
    m->set_overhead(r.overhead);
    m->set_waiting(r.waiting);
  }
  for (const BladeProgramResult& p : result.programs) ProgramToProto(p, message->add_programs());
  for (const CauTaskResult& t : result.cau_tasks) CauTaskToProto(t, message->add_cau_tasks());
  for (const auto& program : result.window_programs)
    WindowProgramToProto(program, message->add_window_programs());
  if (!result.collective.empty())
    CollectiveToProto(result.collective, message->mutable_collective());
  for (const auto& [epoch, time] : result.first_rerouted) {
    message->add_rerouted_epochs(epoch);
    message->add_rerouted_times(time);
  }
  PackSamples(result.clock, message->mutable_clock_samples());
  PackTallies(result.tallies, message->mutable_tallies());
  message->set_workload_high(result.workload.high);
  message->set_workload_low(result.workload.low);
  message->set_workload_started(result.workload_started);
  message->set_credits_missing(result.credits_missing);
  message->set_flits_out_of_order(result.flits_out_of_order);
  message->set_flits_without_credit(result.flits_without_credit);
  message->set_vcs_out_of_place(result.vcs_out_of_place);
}

absl::StatusOr<NodeResult> UnpackResult(const v1::NodeResult& message) {
  NodeResult result;
  result.node = message.node();
  result.digest = {message.digest_high(), message.digest_low()};
  auto stats = UnpackStats(message.stats());
  if (!stats.ok()) return stats.status();
  result.stats = *stats;
  result.last_event = message.last_event();
  for (const v1::FailedMessage& m : message.failed()) {
    const auto reason = ReasonByName(m.reason());
    if (!reason.ok()) return reason.status();
    result.failed.push_back({m.source(), m.destination(), m.message(), m.bytes(), *reason, m.at()});
  }
  for (const v1::RankResult& m : message.ranks()) {
    result.ranks.push_back({m.rank(), m.finished(), m.calc(), m.overhead(), m.waiting()});
  }
  for (const v1::BladeProgramResult& p : message.programs()) {
    result.programs.push_back(ProgramFromProto(p));
  }
  for (const auto& program : message.window_programs())
    result.window_programs.push_back(WindowProgramFromProto(program));
  for (const v1::CauTaskResult& t : message.cau_tasks()) {
    result.cau_tasks.push_back(CauTaskFromProto(t));
  }
  if (message.has_collective()) result.collective = CollectiveFromProto(message.collective());
  if (message.rerouted_epochs_size() != message.rerouted_times_size()) {
    return absl::InvalidArgumentError(fmt::format("node {}: {} epochs with {} times of first use",
                                                  message.node(), message.rerouted_epochs_size(),
                                                  message.rerouted_times_size()));
  }
  for (int i = 0; i < message.rerouted_epochs_size(); ++i) {
    result.first_rerouted.emplace_back(message.rerouted_epochs(i), message.rerouted_times(i));
  }
  auto samples = UnpackSamples(message.clock_samples());
  if (!samples.ok()) return samples.status();
  result.clock = *std::move(samples);
  auto tallies = UnpackTallies(message.tallies());
  if (!tallies.ok()) return tallies.status();
  result.tallies = *std::move(tallies);
  result.workload = {message.workload_high(), message.workload_low()};
  result.workload_started = message.workload_started();
  result.credits_missing = message.credits_missing();
  result.flits_out_of_order = message.flits_out_of_order();
  result.flits_without_credit = message.flits_without_credit();
  result.vcs_out_of_place = message.vcs_out_of_place();
  return result;
}

}  // namespace percs
