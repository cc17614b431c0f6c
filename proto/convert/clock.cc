#include "proto/convert/clock.h"

#include "fmt/format.h"

namespace percs {
namespace {

constexpr int kPerSample = 4;

}  // namespace

void ClockToProto(const ClockReport& clock, v1::ClockReport* message) {
  message->set_period(clock.settings.period);
  message->set_drift_ppb(clock.settings.drift_ppb);
  message->set_error(clock.settings.error);
  message->set_samples(clock.samples);
  message->set_steady(clock.steady);
  message->set_skew_max(clock.skew_max);
  message->set_skew_mean_ps(clock.skew_mean_ps);
  message->set_bound(clock.bound);
  message->set_depth_max(clock.depth_max);
  message->set_skew_max_ever(clock.skew_max_ever);
  message->set_age_max(clock.age_max);
  for (const NodeId source : clock.sources) message->add_sources(source);
  message->set_synchronised(clock.synchronised);
  message->set_hubs(clock.hubs);
}

ClockReport ClockFromProto(const v1::ClockReport& message) {
  ClockReport clock;
  clock.on = true;
  clock.settings = {message.period(), message.drift_ppb(), message.error()};
  clock.samples = message.samples();
  clock.steady = message.steady();
  clock.skew_max = message.skew_max();
  clock.skew_mean_ps = message.skew_mean_ps();
  clock.bound = message.bound();
  clock.depth_max = message.depth_max();
  clock.skew_max_ever = message.skew_max_ever();
  clock.age_max = message.age_max();
  clock.sources.assign(message.sources().begin(), message.sources().end());
  clock.synchronised = message.synchronised();
  clock.hubs = message.hubs();
  return clock;
}

void PackSamples(const std::vector<ClockSample>& samples, PackedSamples* packed) {
  packed->Reserve(static_cast<int>(samples.size()) * kPerSample);
  for (const ClockSample& s : samples) {
    packed->Add(s.offset);
    packed->Add(s.age == kNever ? -1 : s.age);
    packed->Add(s.source);
    packed->Add(s.depth);
  }
}

absl::StatusOr<std::vector<ClockSample>> UnpackSamples(const PackedSamples& packed) {
  if (packed.size() % kPerSample != 0) {
    return absl::InvalidArgumentError(
        fmt::format("{} numbers of clock samples, which have {} each", packed.size(), kPerSample));
  }
  std::vector<ClockSample> samples;
  for (int i = 0; i < packed.size(); i += kPerSample) {
    samples.push_back({packed[i], packed[i + 1] < 0 ? kNever : packed[i + 1],
                       static_cast<NodeId>(packed[i + 2]),
                       static_cast<std::uint32_t>(packed[i + 3])});
  }
  return samples;
}

}  // namespace percs
