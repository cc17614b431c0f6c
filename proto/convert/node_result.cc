#include "proto/convert/node_result.h"

#include "fmt/format.h"
#include "proto/convert/clock.h"
#include "proto/convert/counters.h"
#include "proto/convert/result_parts.h"

namespace percs {

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
        fmt::format("{} fault tally numbers; expected a multiple of 4", packed.size()));
  }
  std::vector<FaultTally> tallies;
  for (int i = 0; i < packed.size(); i += 4) {
    tallies.push_back(
        {static_cast<std::uint32_t>(packed[i]), {packed[i + 1], packed[i + 2], packed[i + 3]}});
  }
  return tallies;
}

namespace {

void PackPhase(std::vector<PhasePart> parts, PackedTallies* packed) {
  for (PhasePart& part : parts)
    part.Visit(parts.size() > 1, [packed](std::uint64_t number) { packed->Add(number); });
}

// None of a run without a measurement phase.
absl::StatusOr<std::vector<PhasePart>> UnpackPhase(const PackedTallies& packed) {
  const auto numbers = [](std::size_t parts) {
    int count = 0;
    PhasePart().Visit(parts > 1, [&count](std::uint64_t) { ++count; });
    return count * static_cast<int>(parts);
  };
  const int size = packed.size(), one = numbers(1), all = numbers(SteadyPart::kParts);
  if (size != 0 && size != one && size != all) {
    return absl::InvalidArgumentError(
        fmt::format("{} numbers of a measurement phase; expected 0, {} or {}", size, one, all));
  }
  std::vector<PhasePart> parts(size == 0 ? 0 : size == one ? 1 : SteadyPart::kParts);
  int next = 0;
  for (PhasePart& part : parts)
    part.Visit(parts.size() > 1, [&](std::uint64_t& number) { number = packed[next++]; });
  return parts;
}

}  // namespace

void NodeResultToProto(const NodeResult& result, v1::NodeResult* message) {
  message->set_node(result.node);
  message->set_digest_high(result.digest.high);
  message->set_digest_low(result.digest.low);
  PackStats(result.stats, message->mutable_stats());
  message->set_last_event(result.last_event);
  PartsToProto(result, message);
  for (const auto& [epoch, time] : result.first_rerouted) {
    message->add_rerouted_epochs(epoch);
    message->add_rerouted_times(time);
  }
  PackSamples(result.clock, message->mutable_clock_samples());
  PackTallies(result.tallies, message->mutable_tallies());
  PackPhase(result.phase, message->mutable_phase());
  message->set_workload_high(result.workload.high);
  message->set_workload_low(result.workload.low);
  message->set_workload_started(result.workload_started);
  message->set_credits_missing(result.credits_missing);
  message->set_flits_out_of_order(result.flits_out_of_order);
  message->set_flits_without_credit(result.flits_without_credit);
  message->set_vcs_out_of_place(result.vcs_out_of_place);
}

absl::StatusOr<NodeResult> NodeResultFromProto(const v1::NodeResult& message) {
  NodeResult result;
  result.node = message.node();
  result.digest = {message.digest_high(), message.digest_low()};
  auto stats = UnpackStats(message.stats());
  if (!stats.ok()) return stats.status();
  result.stats = *stats;
  result.last_event = message.last_event();
  if (absl::Status status = PartsFromProto(message, &result); !status.ok()) return status;
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
  auto phase = UnpackPhase(message.phase());
  if (!phase.ok()) return phase.status();
  result.phase = *std::move(phase);
  result.workload = {message.workload_high(), message.workload_low()};
  result.workload_started = message.workload_started();
  result.credits_missing = message.credits_missing();
  result.flits_out_of_order = message.flits_out_of_order();
  result.flits_without_credit = message.flits_without_credit();
  result.vcs_out_of_place = message.vcs_out_of_place();
  return result;
}

}  // namespace percs
