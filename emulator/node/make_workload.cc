#include "emulator/node/make_workload.h"

#include "emulator/collectives/loop.h"
#include "emulator/collectives/trees.h"
#include "emulator/workload/all_to_all.h"
#include "emulator/workload/background.h"
#include "emulator/workload/blade_answers.h"
#include "emulator/workload/cau_loop.h"
#include "emulator/workload/injection.h"
#include "emulator/workload/pattern_traffic.h"
#include "emulator/workload/scripted.h"
#include "emulator/workload/trace_traffic.h"
#include "emulator/workload/window_programs.h"
#include "fmt/format.h"

namespace percs {

namespace {

bool ExchangesWithBlades(const Scenario& scenario, NodeId hub) {
  for (const BladeConfig& blade : scenario.blades) {
    for (const BladeProgram& program : blade.programs) {
      const auto* exchange = std::get_if<ExchangeProgram>(&program);
      if (exchange && exchange->peer == hub) return true;
    }
  }
  return false;
}

absl::StatusOr<std::unique_ptr<HubWorkload>> MakePattern(const PatternWorkload& pattern,
                                                         std::uint64_t token,
                                                         const Scenario& scenario,
                                                         HubServices& hub) {
  const auto places = static_cast<NodeId>(scenario.topology.places());
  std::vector<DestinationPattern> patterns;
  for (NodeId i = 0; i < places; ++i) {
    auto one = DestinationPattern::Create(pattern, scenario.topology, scenario.seed,
                                          hub.context().node * places + i);
    if (!one.ok()) return one.status();
    patterns.push_back(*std::move(one));
  }
  return std::make_unique<PatternTraffic>(pattern, std::move(patterns), scenario.seed, hub, token);
}

absl::StatusOr<std::unique_ptr<HubWorkload>> MakeOwn(const Scenario& scenario,
                                                     const Topology& topology, HubServices& hub) {
  if (const auto* all_to_all = std::get_if<AllToAllWorkload>(&scenario.workload)) {
    return std::make_unique<AllToAll>(*all_to_all, topology, hub);
  }
  if (const auto* pattern = std::get_if<PatternWorkload>(&scenario.workload)) {
    return MakePattern(*pattern, 0, scenario, hub);
  }
  if (const auto* scripted = std::get_if<ScriptedWorkload>(&scenario.workload)) {
    return std::make_unique<Scripted>(*scripted, hub);
  }
  if (const auto* trace = std::get_if<TraceWorkload>(&scenario.workload)) {
    return std::make_unique<TraceTraffic>(*trace, topology, hub);
  }
  if (const auto* collective = std::get_if<CollectiveWorkload>(&scenario.workload)) {
    return std::make_unique<CollectiveLoop>(*collective, hub);
  }
  if (const auto* loop = std::get_if<CauWorkload>(&scenario.workload)) {
    return std::make_unique<CauLoop>(*loop, scenario.trees, scenario.seed, hub);
  }
  if (const auto* windows = std::get_if<WindowWorkload>(&scenario.workload)) {
    return std::make_unique<WindowPrograms>(*windows, hub);
  }
  if (const auto* other = std::get_if<OtherWorkload>(&scenario.workload)) return (*other)(hub);
  return std::unique_ptr<HubWorkload>();
}

}  // namespace

absl::Status CheckBackground(const Scenario& scenario) {
  if (!scenario.background || std::holds_alternative<CauWorkload>(scenario.workload))
    return absl::OkStatus();
  if (!std::holds_alternative<CollectiveWorkload>(scenario.workload) &&
      !std::holds_alternative<TraceWorkload>(scenario.workload)) {
    return absl::InvalidArgumentError(
        "background is only for workloads cau, collective and trace; this workload is traffic "
        "itself");
  }
  if (scenario.background->drain > 0) {
    return absl::InvalidArgumentError(
        "drain ends the run, and background is beside a workload that ends it; leave out drain");
  }
  if (scenario.background->reliable || scenario.background->payload == PayloadMode::kVerified) {
    return absl::InvalidArgumentError(
        "beside collective and trace, whose messages have their own content, background is raw "
        "packets: leave out reliable and payload");
  }
  return absl::OkStatus();
}

namespace {

// Virtual time ends at 2^61 ps, 26 days; traffic stays far from it.
constexpr Time kGapMax = 1000 * kSecond;
constexpr double kTrafficMax = 1e6 * kSecond;

absl::Status CheckDrain(const PatternWorkload& pattern) {
  if (pattern.drain == 0) return absl::OkStatus();
  if (pattern.measure == 0) {
    return absl::InvalidArgumentError(
        "drain is the time for packets of a measurement to arrive; write for example `measure: "
        "100us`, too");
  }
  if (pattern.reliable || pattern.pattern == Pattern::kMulticast) {
    return absl::InvalidArgumentError(
        "drain waits for raw packets, each with one destination; leave out drain, or `reliable: "
        "true` and multicast");
  }
  return absl::OkStatus();
}

// Mean time between two messages of a load.
absl::Status CheckGaps(const PatternWorkload& pattern, Time w_flit_time) {
  if (pattern.outstanding > 0 && (pattern.load > 0 || !pattern.reliable)) {
    return absl::InvalidArgumentError(fmt::format(
        "outstanding {} closes the loop by messages that are known to be delivered: it takes the "
        "place of a load; write `reliable: true` and leave out load",
        pattern.outstanding));
  }
  if (pattern.injection == Injection::kBernoulli &&
      (pattern.load <= 0 || pattern.burst_messages > 1)) {
    return absl::InvalidArgumentError(
        "injection bernoulli is of a load and has no bursts; write for example `load: 0.3` and "
        "leave out burst_messages");
  }
  if (pattern.load <= 0) {
    if (pattern.burst_messages <= 1) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "bursts need pauses, and messages of a count without a load have none; write a load, for "
        "example `load: 0.3`");
  }
  if (pattern.burst_messages > 1 && pattern.burst_load <= pattern.load) {
    return absl::InvalidArgumentError(fmt::format(
        "burst_load {} leaves no pauses at a load of {}; expected more than the load, at most 1",
        pattern.burst_load, pattern.load));
  }
  const MeanGaps gaps = MeanGapsOf(pattern, w_flit_time);
  if (pattern.injection == Injection::kBernoulli &&
      gaps.message_ps < static_cast<double>(w_flit_time)) {
    return absl::InvalidArgumentError(fmt::format(
        "injection bernoulli offers at most one message per flit time of w_rate, {}; a load of {} "
        "in messages of {} bytes needs one every {:.3g} ps: write a lower load or larger messages",
        FormatTime(w_flit_time), pattern.load, pattern.message_bytes, gaps.message_ps));
  }
  const double gap = std::max(gaps.message_ps, gaps.pause_ps);
  const double full =
      gaps.message_ps * (pattern.burst_messages > 1 ? pattern.burst_load : pattern.load);
  const double gap_max =
      std::min(static_cast<double>(kGapMax),
               kTrafficMax / static_cast<double>(std::max<std::uint64_t>(pattern.count, 1)));
  if (gap <= gap_max) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "a load of {}: a message of {} bytes takes {} at w_rate, so {} come every {:.3g} s on "
      "average; write a load of at least {:.2g}{}",
      pattern.load, pattern.message_bytes, FormatTime(static_cast<Time>(full)),
      pattern.burst_messages > 1 ? "bursts" : "they", gap / static_cast<double>(kSecond),
      1.1 * full * static_cast<double>(pattern.burst_messages) / gap_max,
      pattern.count > 1 ? ", or fewer messages" : ""));
}

}  // namespace

absl::Status CheckWorkload(const Scenario& scenario, const Topology& topology) {
  if (absl::Status status = CheckBackground(scenario); !status.ok()) return status;
  for (const PatternWorkload* pattern : {scenario.background ? &*scenario.background : nullptr,
                                         std::get_if<PatternWorkload>(&scenario.workload)}) {
    if (!pattern) continue;
    const auto made = DestinationPattern::Create(*pattern, scenario.topology, scenario.seed, 0);
    if (!made.ok()) return made.status();
    absl::Status status = CheckGaps(*pattern, scenario.parameters.w_flit_time);
    if (status.ok()) status = CheckDrain(*pattern);
    if (!status.ok()) return status;
  }
  const int windows = kHfisPerHub * scenario.parameters.windows_per_hfi;
  if (const auto* trace = std::get_if<TraceWorkload>(&scenario.workload))
    return TraceTraffic::Check(*trace, topology, windows);
  if (const auto* collective = std::get_if<CollectiveWorkload>(&scenario.workload)) {
    absl::Status status = CheckCollectiveTree(*collective, scenario.trees);
    if (status.ok()) status = CheckCollectiveWorkload(*collective, topology.leaves());
    return status.ok() ? CheckCollectiveSize(*collective, windows) : status;
  }
  if (const auto* loop = std::get_if<CauWorkload>(&scenario.workload))
    return CauLoop::Check(*loop, scenario.trees.size());
  if (const auto* programs = std::get_if<WindowWorkload>(&scenario.workload))
    return WindowPrograms::Check(*programs, topology);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<HubWorkload>> MakeHubWorkload(const Scenario& scenario,
                                                             const Topology& topology,
                                                             HubServices& hub) {
  const NodeId node = hub.context().node;
  // Traffic between hubs; a blade sends only by a script or its own programs, and so does an inner
  // switch of a fat tree.
  if ((topology.is_blade(node) || (node >= topology.leaves() && node < topology.hubs())) &&
      !std::holds_alternative<ScriptedWorkload>(scenario.workload)) {
    return std::unique_ptr<HubWorkload>();
  }
  auto own = MakeOwn(scenario, topology, hub);
  if (own.ok() && scenario.background) {
    auto traffic = MakePattern(*scenario.background, kBackgroundToken, scenario, hub);
    if (!traffic.ok()) return traffic.status();
    own = *own == nullptr ? std::move(traffic)
                          : std::make_unique<Background>(
                                *std::move(own), *std::move(traffic),
                                std::holds_alternative<CauWorkload>(scenario.workload));
  }
  if (!own.ok() || !ExchangesWithBlades(scenario, node)) return own;
  return std::make_unique<BladeAnswers>(topology, hub, *std::move(own));
}

}  // namespace percs
