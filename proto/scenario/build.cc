#include "proto/scenario/build.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "absl/strings/str_split.h"
#include "emulator/base/status.h"
#include "emulator/node/service_agent.h"
#include "emulator/sim/fabric.h"
#include "emulator/workload/background.h"
#include "emulator/workload/goal.h"
#include "emulator/workload/patterns.h"
#include "emulator/workload/ticks.h"
#include "fmt/format.h"
#include "proto/scenario/blades.h"
#include "proto/scenario/collective.h"
#include "proto/scenario/permutation_file.h"
#include "proto/scenario/scenario_faults.h"
#include "proto/scenario/topology_kind.h"
#include "proto/scenario/trees.h"
#include "proto/scenario/units.h"
#include "proto/scenario/validate.h"
#include "proto/scenario/windows.h"

namespace percs {
namespace {

PayloadMode BuildPayload(v1::Payload payload, PayloadMode otherwise) {
  if (payload == v1::PAYLOAD_UNSPECIFIED) return otherwise;
  return payload == v1::PAYLOAD_VERIFIED ? PayloadMode::kVerified : PayloadMode::kLengths;
}

// Translates one scenario; every problem goes to the list, so that all are reported at once.
class Builder {
 public:
  Builder(const v1::Scenario& message, const std::string& directory, ErrorList* errors)
      : message_(message), directory_(directory), errors_(*errors) {}

  void Build(Scenario* scenario) {
    if (message_.has_name()) scenario->name = message_.name();
    if (message_.has_seed()) scenario->seed = message_.seed();
    if (message_.has_reroute()) scenario->reroute = message_.reroute();
    if (message_.has_stop_at()) scenario->stop_at = message_.stop_at();
    scenario->topology = BuildTopology(message_.topology(), directory_, &errors_);
    scenario->parameters = BuildParameters(message_.parameters(), scenario->topology.endpoints);
    CheckParameters(scenario->parameters, &errors_);
    windows_ = 2 * scenario->parameters.windows_per_hfi;

    if (message_.has_clock()) scenario->topology.clock = BuildClock(message_.clock());
    topology_ = BuildMachine(message_, scenario->topology, &errors_);
    if (topology_) {
      BuildGroups();
      BuildDevices();
      scenario->topology = topology_->spec();
      scenario->blades = BuildBlades(message_, *topology_, &errors_);
    }
    BuildRouting(&scenario->routing);
    CheckBudget(scenario->parameters);
    if (topology_) scenario->trees = BuildTrees(message_, *topology_, &errors_);
    trees_ = &scenario->trees;
    scenario->workload = BuildWorkload();
    if (const auto* w = std::get_if<PatternWorkload>(&scenario->workload); w && w->drain > 0) {
      const Time end = w->warm_up + w->measure + w->drain;
      scenario->stop_at = scenario->stop_at > 0 ? std::min(scenario->stop_at, end) : end;
    }
    if (message_.workload().has_background()) {
      scenario->background = BuildPattern(message_.workload().background(), "workload.background");
      if (absl::Status status = CheckBackground(*scenario); !status.ok()) {
        errors_.Add("workload.background", MessageOf(status));
      }
    }
    BuildCables(scenario);
    if (topology_) BuildFaults(message_, *topology_, scenario, &errors_);
    BuildService(&scenario->service);
  }

 private:
  NodeId Node(const std::string& path, const std::string& name) {
    if (!topology_) return kNoNode;  // already reported; no name can be checked
    const auto node = topology_->ParseNode(name);
    if (node.ok()) return *node;
    errors_.Add(path, MessageOf(node.status()));
    return kNoNode;
  }

  void BuildService(ServiceTraffic* service) {
    const v1::Service& message = message_.service();
    if (message.has_probe_rounds()) service->probe_rounds = message.probe_rounds();
    if (message.has_probe_at()) service->probe_at = message.probe_at();
    if (message.has_probe_period()) service->probe_period = message.probe_period();
    if (message.has_timeout()) service->timeout = message.timeout();
    if (message.has_tries()) service->tries = message.tries();
    for (int i = 0; i < message.pings_size(); ++i) {
      const v1::ServicePing& from = message.pings(i);
      const std::string path = fmt::format("service.pings[{}]", i);
      ServicePing ping{Node(path + ".from", from.from()), Node(path + ".to", from.to())};
      if (from.has_at()) ping.at = from.at();
      if (from.has_count()) ping.count = from.count();
      if (from.has_period()) ping.period = from.period();
      if (ping.from == kNoNode || ping.to == kNoNode) continue;
      const absl::Status status = CheckPing(ping, *topology_);
      if (!status.ok()) {
        errors_.Add(path, MessageOf(status));
        continue;
      }
      service->pings.push_back(ping);
    }
    if (!topology_) return;
    const absl::Status status = CheckService(*service, *topology_);
    if (!status.ok()) errors_.Add("service", MessageOf(status));
  }

  static ClockSettings BuildClock(const v1::GlobalClock& message) {
    ClockSettings clock;
    if (message.has_period()) clock.period = message.period();
    if (message.has_drift_ppb()) clock.drift_ppb = message.drift_ppb();
    if (message.has_error()) clock.error = message.error();
    return clock;
  }

  // A node, or a multicast group of `source`.
  NodeId Destination(const std::string& path, const std::string& name, NodeId source) {
    if (!topology_) return kNoNode;
    const auto known = topology_->ParseDestination(name);
    if (!known.ok() || !topology_->is_group(*known)) return Node(path, name);
    const NodeId sender = topology_->groups()[topology_->group_of(*known)].source;
    if (sender != source) {
      errors_.Add(path, fmt::format("only {1} may send packets to multicast group {0}", name,
                                    topology_->NodeName(sender)));
    }
    return *known;
  }

  void BuildGroups() {
    for (int i = 0; i < message_.multicast_size(); ++i) {
      const v1::MulticastGroup& from = message_.multicast(i);
      const absl::Status status = topology_->AddGroup(
          {from.name(), from.source(), absl::StrSplit(from.members(), ' ', absl::SkipEmpty())});
      if (!status.ok()) errors_.Add(fmt::format("multicast[{}]", i), MessageOf(status));
    }
  }

  void BuildDevices() {
    for (int i = 0; i < message_.pcie_size(); ++i) {
      const v1::PcieDevice& from = message_.pcie(i);
      const std::string path = fmt::format("pcie[{}]", i);
      PcieDevice device;
      device.hub = Node(path + ".hub", from.hub());
      if (device.hub == kNoNode) continue;
      device.port = from.port();
      if (from.has_lanes()) device.lanes = from.lanes();
      if (from.has_bytes()) device.bytes = static_cast<std::uint64_t>(from.bytes());
      if (from.has_latency()) device.latency = from.latency();
      if (absl::Status status = topology_->AddDevice(device); !status.ok())
        errors_.Add(path, MessageOf(status));
    }
  }

  RouteSetting BuildRoute(const v1::RouteSetting& message, const std::string& path) {
    static_assert(v1::ROUTE_MODE_HW_DIRECT == static_cast<int>(RouteMode::kHwDirect) + 1 &&
                  v1::ROUTE_MODE_ADAPTIVE == static_cast<int>(RouteMode::kAdaptive) + 1);
    RouteSetting setting;
    if (message.mode() != v1::ROUTE_MODE_UNSPECIFIED) {
      setting.mode = static_cast<RouteMode>(message.mode() - 1);
    }
    if (message.selection() == v1::MIDDLE_SELECTION_RANDOM) {
      setting.selection = MiddleSelection::kRandom;
    }
    if (message.has_middle_supernode()) {
      setting.middle = static_cast<std::uint16_t>(message.middle_supernode());
    }
    setting.adaptive_threshold = message.adaptive_threshold();
    static_assert(v1::ADAPTIVE_ALGORITHM_IN_TRANSIT ==
                  static_cast<int>(AdaptiveAlgorithm::kInTransit) + 1);
    if (message.adaptive() != v1::ADAPTIVE_ALGORITHM_UNSPECIFIED) {
      setting.adaptive = static_cast<AdaptiveAlgorithm>(message.adaptive() - 1);
    }
    if (!topology_) return setting;
    const absl::Status status = CheckRouteSetting(setting, topology_->supernodes());
    if (!status.ok()) errors_.Add(path, MessageOf(status));
    return setting;
  }

  void BuildRouting(RoutingSettings* routing) {
    const auto build = [this](const v1::Routing& message, const std::string& path,
                              RoutingSettings* to) {
      if (message.has_fifo()) to->fifo = BuildRoute(message.fifo(), path + ".fifo");
      if (message.has_rdma()) to->rdma = BuildRoute(message.rdma(), path + ".rdma");
    };
    build(message_.routing(), "routing", routing);
    build(message_.workload().routing(), "workload.routing", routing);
    if (message_.workload().traffic() == v1::TRAFFIC_CLASS_RDMA) {
      routing->workload = TrafficClass::kRdma;
    }
  }

  void CheckBudget(const P7ihParameters& parameters) {
    if (!topology_) return;
    const absl::Status status = CheckTableSize(
        topology_->hubs_per_supernode(), topology_->supernodes(), parameters.route_table_entries);
    if (!status.ok()) errors_.Add("parameters.route_table_entries", MessageOf(status));
    const absl::Status multicast = CheckMulticastParameters(topology_->groups().size(), parameters);
    if (!multicast.ok()) errors_.Add("multicast", MessageOf(multicast));
  }

  Workload BuildWorkload() {
    const v1::Workload& workload = message_.workload();
    switch (workload.kind_case()) {
      case v1::Workload::kAllToAll:
        return BuildAllToAll(workload.all_to_all());
      case v1::Workload::kPattern:
        return BuildPattern(workload.pattern(), "workload.pattern");
      case v1::Workload::kPackets:
        return BuildPackets(workload.packets());
      case v1::Workload::kTrace:
        return BuildTrace(workload.trace());
      case v1::Workload::kTicks:
        return BuildTicks(workload.ticks());
      case v1::Workload::kCau:
        return BuildCauLoop(workload.cau(), *trees_, &errors_);
      case v1::Workload::kCollective:
        return BuildCollective(workload.collective(), *trees_, topology_ ? topology_->hubs() : 0,
                               &errors_);
      case v1::Workload::kWindows:
        if (topology_) return BuildWindows(workload.windows(), *topology_, &errors_);
        break;
      case v1::Workload::KIND_NOT_SET:
        break;
    }
    return std::monostate{};
  }

  static Workload BuildAllToAll(const v1::AllToAll& message) {
    AllToAllWorkload w;
    if (message.has_bytes()) w.bytes = static_cast<std::uint64_t>(message.bytes());
    if (message.schedule() == v1::SCHEDULE_LINEAR) w.schedule = Schedule::kLinear;
    if (message.has_reliable()) w.reliable = message.reliable();
    w.payload = BuildPayload(message.payload(), w.payload);
    return w;
  }

  PatternWorkload BuildPattern(const v1::PatternTraffic& message, const std::string& path) {
    PatternWorkload w;
    static_assert(v1::PATTERN_UNIFORM == static_cast<int>(Pattern::kUniform) + 1 &&
                  v1::PATTERN_ASYMMETRIC == static_cast<int>(Pattern::kAsymmetric) + 1);
    if (message.pattern() != v1::PATTERN_UNSPECIFIED) {
      w.pattern = static_cast<Pattern>(message.pattern() - 1);
    }
    if (message.has_message_bytes())
      w.message_bytes = static_cast<std::uint64_t>(message.message_bytes());
    w.count = static_cast<std::uint64_t>(message.count());
    if (message.has_count()) w.load = 0;
    if (message.has_load()) w.load = message.load();
    w.warm_up = message.warm_up();
    w.measure = message.measure();
    if (message.has_reliable()) w.reliable = message.reliable();
    w.payload = BuildPayload(message.payload(), w.payload);
    if (message.has_hotspot()) w.hotspot = Node(path + ".hotspot", message.hotspot());
    if (message.has_hotspot_fraction()) w.hotspot_fraction = message.hotspot_fraction();
    if (message.has_source_supernode()) w.source_supernode = message.source_supernode();
    if (message.has_destination_supernode())
      w.destination_supernode = message.destination_supernode();
    if (message.has_supernode_offset()) w.supernode_offset = message.supernode_offset();
    if (message.has_uniform_fraction()) w.uniform_fraction = message.uniform_fraction();
    if (message.has_burst_messages())
      w.burst_messages = static_cast<std::uint64_t>(message.burst_messages());
    if (message.has_burst_load()) w.burst_load = message.burst_load();
    if (message.injection() == v1::INJECTION_PROCESS_BERNOULLI) w.injection = Injection::kBernoulli;
    w.outstanding = static_cast<std::uint64_t>(message.outstanding());
    if (message.has_outstanding() && !message.has_load()) w.load = 0;
    w.drain = message.drain();
    w.auto_warm_up = message.auto_warm_up();
    if (w.pattern == Pattern::kPermutation && !BuildPermutation(message, path, &w)) return w;
    CheckPattern(message, w, path);
    return w;
  }

  // False: it is wrong, so further checks of the pattern would be wrong, too.
  bool BuildPermutation(const v1::PatternTraffic& message, const std::string& path,
                        PatternWorkload* w) {
    if (!topology_) return false;
    const std::string field = path + ".permutation_file";
    if (message.permutation_file().empty() && !message.has_inline_permutation()) {
      errors_.Add(field,
                  "pattern permutation needs it; write for example "
                  "`permutation_file: shift.txt`");
      return false;
    }
    const auto text = ReadPermutationFile(message, directory_);
    auto list = text.ok() ? ParsePermutation(*text, *topology_)
                          : absl::StatusOr<std::vector<NodeId>>(text.status());
    if (list.ok()) {
      w->permutation = *std::move(list);
      return true;
    }
    errors_.Add(field,
                (text.ok() ? message.permutation_file() + ", " : "") + MessageOf(list.status()));
    return false;
  }

  void CheckPattern(const v1::PatternTraffic& message, const PatternWorkload& w,
                    const std::string& path) {
    for (const auto& [given, name] : {std::pair(message.has_warm_up(), "warm_up"),
                                      std::pair(message.has_measure(), "measure")}) {
      if (!given || !message.has_count()) continue;
      errors_.Add(fmt::format("{}.{}", path, name),
                  fmt::format("count and {} exclude each other; remove one", name));
    }
    if (w.warm_up > 0 && !message.has_measure() && !message.has_count()) {
      errors_.Add(path + ".warm_up", "warm_up without measure; write for example `measure: 100us`");
    }
    if (w.auto_warm_up && !message.has_measure()) {
      errors_.Add(path + ".auto_warm_up",
                  "auto_warm_up without measure; write for example `measure: 200us`");
    }
    if (!topology_ || w.hotspot == kNoNode) return;
    const auto pattern = DestinationPattern::Create(w, topology_->spec(), message_.seed(), 0);
    if (!pattern.ok()) errors_.Add(path + ".pattern", MessageOf(pattern.status()));
  }

  void CheckWindow(const std::string& path, int window) {
    if (window < windows_) return;
    errors_.Add(
        path, fmt::format("window {} does not exist; a hub has 2 x windows_per_hfi = 2 x {} = {}, "
                          "allowed: 0 to {}",
                          window, windows_ / 2, windows_, windows_ - 1));
  }

  Workload BuildPackets(const v1::PacketScript& script) {
    ScriptedWorkload w;
    for (int i = 0; i < script.list_size(); ++i) {
      const v1::Packet& from = script.list(i);
      const std::string path = fmt::format("workload.packets[{}]", i);
      ScriptedPacket packet;
      packet.at = from.at();
      packet.source = Node(path + ".source", from.source());
      packet.destination = Destination(path + ".destination", from.destination(), packet.source);
      CheckWindow(path + ".source_window", from.source_window());
      CheckWindow(path + ".destination_window", from.destination_window());
      packet.source_window = static_cast<WindowId>(from.source_window());
      packet.destination_window = static_cast<WindowId>(from.destination_window());
      if (from.has_bytes()) packet.bytes = static_cast<int>(from.bytes());
      if (from.has_route()) packet.route = BuildRoute(from.route(), path + ".route");
      w.packets.push_back(packet);
    }
    return w;
  }

  Workload BuildTrace(const v1::Trace& message) {
    TraceWorkload w;
    if (message.mapping() == v1::RANK_MAPPING_BLOCK) w.mapping = RankMapping::kBlock;
    if (message.has_calc_scale()) w.calc_scale = message.calc_scale();
    const auto text = ReadTrace(message, directory_);
    if (!text.ok()) {
      errors_.Add("workload.trace.file", MessageOf(text.status()));
      return w;
    }
    auto trace = ParseGoal(*text, message.file());
    if (trace.ok()) {
      w.trace = *std::move(trace);
    } else {
      errors_.Add("workload.trace.file", MessageOf(trace.status()));
    }
    return w;
  }

  Workload BuildTicks(const v1::Ticks& message) {
    TickWorkload w;
    if (message.has_hubs()) w.hubs = static_cast<std::uint64_t>(message.hubs());
    if (message.has_period()) w.period = message.period();
    if (message.has_count()) w.count = static_cast<std::uint64_t>(message.count());
    if (topology_ && w.hubs > topology_->hubs()) {
      errors_.Add("workload.ticks.hubs",
                  fmt::format("{} hubs cannot tick, the machine has {}; write at most {}", w.hubs,
                              topology_->hubs(), topology_->hubs()));
    }
    return w;
  }

  void BuildCables(Scenario* scenario) {
    if (!topology_) return;
    std::map<std::pair<NodeId, PortId>, int> seen;
    for (int i = 0; i < message_.cables_size(); ++i) {
      const v1::Cable& cable = message_.cables(i);
      const std::string path = fmt::format("cables[{}]", i);
      const auto link = topology_->ParseLink(cable.link());
      if (!link.ok()) {
        errors_.Add(path + ".link", MessageOf(link.status()));
        continue;
      }
      const LinkEnd lower = Canonical(*link);
      const auto [it, first] = seen.try_emplace({lower.node, lower.port}, i);
      if (!first) {
        errors_.Add(path + ".link",
                    fmt::format("cables[{1}] already sets the wire of {0}; remove one",
                                topology_->LinkName(lower), it->second));
      }
      if (cable.wire() + scenario->parameters.credit_processing == 0) {
        errors_.Add(path + ".wire",
                    "a credit would take wire + credit_processing = 0ps; raise one of the two");
      }
      scenario->cables.push_back({lower, cable.wire()});
    }
  }

  // A link by its lower end, so that both of its names are the same link.
  LinkEnd Canonical(LinkEnd end) const {
    const LinkEnd peer = topology_->Peer(end.node, end.port);
    return peer.node < end.node ? peer : end;
  }

  const v1::Scenario& message_;
  const std::string& directory_;
  ErrorList& errors_;
  std::optional<Topology> topology_;
  const std::vector<TreeSpec>* trees_ = nullptr;
  int windows_ = 0;
};

}  // namespace

absl::StatusOr<Scenario> BuildScenario(const v1::Scenario& message, const std::string& directory,
                                       const SourceMarks* marks) {
  const SourceMarks no_marks;
  ErrorList errors(marks != nullptr ? marks : &no_marks);
  CheckFields(message, &errors);
  if (!errors.empty()) return errors.ToStatus();
  Scenario scenario;
  Builder(message, directory, &errors).Build(&scenario);
  if (!errors.empty()) return errors.ToStatus();
  return scenario;
}

absl::StatusOr<Scenario> BuildScenario(const LoadedScenario& loaded) {
  return BuildScenario(loaded.scenario, loaded.directory, &loaded.marks);
}

absl::StatusOr<Scenario> BuildScenarioFile(const std::string& path) {
  const auto loaded = LoadScenarioFile(path);
  if (!loaded.ok()) return loaded.status();
  return BuildScenario(*loaded);
}

Pacing PacingOf(const v1::Scenario& scenario) {
  Pacing pacing;
  pacing.live = scenario.run().clock() == v1::CLOCK_LIVE;
  pacing.idle_holds = pacing.live && scenario.run().idle() == v1::IDLE_HOLD;
  if (scenario.run().has_pace()) pacing.pace = scenario.run().pace();
  return pacing;
}

}  // namespace percs
