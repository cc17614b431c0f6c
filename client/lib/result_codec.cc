#include "client/lib/result_codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "emulator/metrics/blade_counters.h"
#include "emulator/metrics/cau_counters.h"
#include "emulator/metrics/hfi_counters.h"
#include "proto/scenario/blades.h"
#include "proto/scenario/clock_codec.h"
#include "proto/scenario/collective.h"
#include "proto/scenario/commands.h"
#include "proto/scenario/trees.h"
#include "proto/scenario/windows.h"

namespace percs {
namespace {

template <typename Enum>
std::optional<Enum> ByName(const std::string& name, int count, const char* (*name_of)(Enum)) {
  for (int i = 0; i < count; ++i) {
    if (name == name_of(static_cast<Enum>(i))) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

absl::Status Unknown(const char* what, const std::string& value) {
  return absl::InvalidArgumentError(fmt::format(
      "the controller's answer has {} \"{}\", which this percsctl does not know", what, value));
}

using Drops = std::array<std::uint64_t, kDropReasons>;
absl::Status ReadDrops(const google::protobuf::Map<std::string, std::uint64_t>& map, Drops& drops) {
  for (const auto& [name, count] : map) {
    const auto reason = ByName<DropReason>(name, kDropReasons, DropReasonName);
    if (!reason) return Unknown("drop reason", name);
    drops[static_cast<int>(*reason)] = count;
  }
  return absl::OkStatus();
}

Histogram ReadHistogram(const v1::Histogram& message) {
  Histogram h;
  h.count = message.count();
  h.sum = message.sum();
  h.max = message.max();
  for (int i = 0; i < message.buckets_size() && i < Histogram::kBuckets; ++i) {
    h.buckets[i] = message.buckets(i);
  }
  return h;
}

absl::Status ReadPorts(const v1::Counters& message, NodeStats& stats) {
  for (const v1::PortCounters& p : message.ports()) {
    if (p.port() >= kPorts) return Unknown("port", fmt::format("{}", p.port()));
    PortStats& port = stats.ports[p.port()];
    port.credit_stall_ps = p.credit_stall_ps();
    port.crc_errors = p.crc_errors();
    port.replays = p.replays();
    port.lanes_lost = p.lanes_lost();
    port.service_flits = p.service_flits();
    for (const v1::VcCounters& v : p.vcs()) {
      if (v.vc() >= kMaxVcs) return Unknown("VC", fmt::format("{}", v.vc()));
      port.vc[v.vc()] = {v.flits(),
                         v.packets(),
                         v.bytes(),
                         v.runs_split(),
                         v.arbitration_losses(),
                         v.credit_stalls(),
                         v.credit_stall_ps(),
                         v.most_held()};
    }
  }
  return absl::OkStatus();
}

absl::Status ReadLinks(const google::protobuf::RepeatedPtrField<std::string>& names,
                       const Topology& topology, std::vector<LinkEnd>& links) {
  for (const std::string& name : names) {
    const auto link = topology.ParseLink(name);
    if (!link.ok()) return Unknown("link", name);
    links.push_back(*link);
  }
  return absl::OkStatus();
}

absl::StatusOr<Reroute> ReadReroute(const v1::Reroute& message, const Topology& topology) {
  Reroute r;
  r.epoch = message.epoch();
  if (auto s = ReadLinks(message.down(), topology, r.down); !s.ok()) return s;
  if (auto s = ReadLinks(message.up(), topology, r.up); !s.ok()) return s;
  r.raised = message.raised();
  r.alerted = message.alerted();
  r.planning_started = message.planning_started();
  r.planned = message.planned();
  r.committed = message.committed();
  if (message.has_first_packet()) r.first_packet = message.first_packet();
  r.hubs_changed = message.hubs_changed();
  r.unreachable_pairs = message.unreachable_pairs();
  for (const std::string& name : message.damaged()) {
    const auto node = topology.ParseNode(name);
    if (!node.ok()) return Unknown("hub", name);
    r.damaged.push_back(*node);
  }
  return r;
}

const char* NameOfMode(RouteMode mode) { return RouteModeName(mode); }

absl::Status ReadModes(const v1::Counters& message, NodeStats& stats) {
  for (const auto& [name, count] : message.packets_by_mode()) {
    const auto mode = ByName<RouteMode>(name, kPacketRouteModes, NameOfMode);
    if (!mode) return Unknown("route mode", name);
    stats.packets_by_mode[static_cast<int>(*mode)] = count;
  }
  return absl::OkStatus();
}

absl::StatusOr<Digest> ReadDigest(const std::string& text) {
  if (text.size() != 32 || text.find_first_not_of("0123456789abcdef") != std::string::npos) {
    return Unknown("digest", text);
  }
  return Digest{std::stoull(text.substr(0, 16), nullptr, 16),
                std::stoull(text.substr(16), nullptr, 16)};
}

const char* NameOfClass(LinkClass c) { return ClassName(c); }

absl::Status ReadLinkClasses(const v1::RunResult& message, RunResult& r) {
  for (const v1::LinkClassUse& use : message.link_classes()) {
    const auto c = ByName<LinkClass>(use.link_class(), kLinkClasses, NameOfClass);
    if (!c) return Unknown("link class", use.link_class());
    const int i = static_cast<int>(*c);
    r.links[i] = use.links();
    r.utilisation_mean[i] = use.utilisation_mean();
    r.utilisation_max[i] = use.utilisation_max();
  }
  return absl::OkStatus();
}

absl::Status ReadFailed(const v1::RunResult& message, RunResult& r) {
  for (const v1::FailedMessage& f : message.failed()) {
    const auto reason = ByName<DropReason>(f.reason(), kDropReasons, DropReasonName);
    if (!reason) return Unknown("drop reason", f.reason());
    r.failed.push_back({f.source(), f.destination(), f.message(), f.bytes(), *reason, f.at()});
  }
  return absl::OkStatus();
}

absl::Status ReadCau(const v1::Counters& message, NodeStats& stats) {
  const auto& names = CauCounterNames();
  for (const auto& [name, count] : message.cau()) {
    const auto it = std::find(names.begin(), names.end(), name);
    if (it == names.end()) return Unknown("counter of a CAU", name);
    stats.cau[static_cast<std::size_t>(it - names.begin())] = count;
  }
  return absl::OkStatus();
}

absl::Status ReadBlade(const v1::Counters& message, NodeStats& stats) {
  const auto& names = BladeCounterNames();
  for (const auto& [name, count] : message.blade()) {
    const auto it = std::find(names.begin(), names.end(), name);
    if (it == names.end()) return Unknown("counter of a blade", name);
    stats.blade[static_cast<std::size_t>(it - names.begin())] = count;
  }
  return absl::OkStatus();
}

// `each` counters of every one of several.
template <typename Enum, std::size_t kCount>
absl::Status ReadGroups(const google::protobuf::RepeatedPtrField<v1::NamedCounters>& groups,
                        int each, const char* (*name_of)(Enum), const char* what,
                        std::array<std::uint64_t, kCount>& counts) {
  if (groups.size() * each > static_cast<int>(kCount))
    return Unknown(what, fmt::format("{}", kCount / each));
  for (int group = 0; group < groups.size(); ++group) {
    for (const auto& [name, count] : groups[group].counts()) {
      const auto counter = ByName<Enum>(name, each, name_of);
      if (!counter) return Unknown(fmt::format("counter of {}", what).c_str(), name);
      counts[group * each + static_cast<int>(*counter)] = count;
    }
  }
  return absl::OkStatus();
}

}  // namespace

TopologySpec SpecFromProto(const v1::Topology& m,
                           const google::protobuf::RepeatedPtrField<v1::BladeSite>& blades) {
  TopologySpec spec;
  if (m.has_supernodes()) spec.supernodes = m.supernodes();
  if (m.has_drawers()) spec.drawers = m.drawers();
  if (m.has_hubs()) spec.hubs = m.hubs();
  if (m.has_d_links_per_pair()) spec.d_links_per_pair = m.d_links_per_pair();
  if (m.has_infiniband())
    spec.infiniband = InfinibandSpec{m.infiniband().cus(), m.infiniband().gateway()};
  for (const v1::BladeSite& blade : blades) spec.blades.push_back({blade.name(), blade.attach()});
  return spec;
}

absl::StatusOr<NodeStats> StatsFromProto(const v1::Counters& m) {
  NodeStats s;
  if (auto status = ReadPorts(m, s); !status.ok()) return status;
  if (auto status = ReadDrops(m.packets_dropped(), s.packets_dropped); !status.ok()) return status;
  if (auto status = ReadDrops(m.flits_dropped(), s.flits_dropped); !status.ok()) return status;
  if (auto status = ReadModes(m, s); !status.ok()) return status;
  s.packets_created = m.packets_created();
  s.flits_created = m.flits_created();
  s.packets_delivered = m.packets_delivered();
  s.flits_delivered = m.flits_delivered();
  s.bytes_delivered = m.bytes_delivered();
  s.packets_synthesised = m.packets_synthesised();
  s.packets_replicated = m.packets_replicated();
  s.flits_replicated = m.flits_replicated();
  s.flits_synthesised = m.flits_synthesised();
  s.hops_delivered = m.hops_delivered();
  s.messages_sent = m.messages_sent();
  s.messages_acknowledged = m.messages_acknowledged();
  s.messages_failed = m.messages_failed();
  s.messages_delivered = m.messages_delivered();
  s.message_bytes_delivered = m.message_bytes_delivered();
  s.packets_resent = m.packets_resent();
  s.acks_sent = m.acks_sent();
  s.payload_errors = m.payload_errors();
  s.payload_bytes_verified = m.payload_bytes_verified();
  s.measured_bytes_offered = m.measured_bytes_offered();
  s.measured_bytes_accepted = m.measured_bytes_accepted();
  s.alerts_raised = m.alerts_raised();
  s.tables_installed = m.tables_installed();
  if (auto status = ReadBlade(m, s); !status.ok()) return status;
  if (auto status = ReadCau(m, s); !status.ok()) return status;
  if (auto status = ReadGroups(m.hfis(), kHfiCounters, HfiCounterName, "HFI", s.hfi); !status.ok())
    return status;
  if (auto status =
          ReadGroups(m.pcie(), kPcieCounters, PcieCounterName, "PCI Express port", s.pcie);
      !status.ok()) {
    return status;
  }
  s.nmmu_hits = m.nmmu_hits();
  s.nmmu_misses = m.nmmu_misses();
  s.service_requests = m.service().requests();
  s.service_answers = m.service().answers();
  s.service_unanswered = m.service().unanswered();
  s.service_wrong_partner = m.service().wrong_partner();
  s.service_round_trip_ps = m.service().round_trip_ps();
  s.service_round_trip_max = m.service().round_trip_max();
  s.packet_latency = ReadHistogram(m.packet_latency());
  s.message_latency = ReadHistogram(m.message_latency());
  return s;
}

absl::StatusOr<RunResult> ResultFromProto(const v1::RunResult& m, const Topology& topology) {
  RunResult r;
  auto digest = ReadDigest(m.digest());
  if (!digest.ok()) return digest.status();
  auto total = StatsFromProto(m.total());
  if (!total.ok()) return total.status();
  r.scenario = m.scenario();
  r.digest = *digest;
  auto workload = ReadDigest(m.workload_digest());
  if (!workload.ok()) return workload.status();
  r.workload = *workload;
  r.workload_started = m.workload_started();
  r.virtual_time = m.virtual_time();
  r.nodes = m.nodes();
  r.total = *total;
  r.flit_hops = m.flit_hops();
  r.packet_hops = m.packet_hops();
  r.hfi_flits = m.hfi_flits();
  r.windows = m.windows();
  if (auto s = ReadLinkClasses(m, r); !s.ok()) return s;
  if (auto s = ReadFailed(m, r); !s.ok()) return s;
  for (const v1::RankResult& x : m.ranks()) {
    r.ranks.push_back({x.rank(), x.finished(), x.calc(), x.overhead(), x.waiting()});
  }
  for (const v1::BladeProgramResult& x : m.programs()) r.programs.push_back(ProgramFromProto(x));
  for (const v1::CauTaskResult& x : m.cau_tasks()) r.cau_tasks.push_back(CauTaskFromProto(x));
  for (const auto& x : m.window_programs()) r.window_programs.push_back(WindowProgramFromProto(x));
  if (m.has_collective()) r.collective = CollectiveFromProto(m.collective());
  for (const v1::Reroute& x : m.reroutes()) {
    auto reroute = ReadReroute(x, topology);
    if (!reroute.ok()) return reroute.status();
    r.reroutes.push_back(*std::move(reroute));
  }
  if (m.has_clock()) r.clock = ClockFromProto(m.clock());
  r.violations.assign(m.violations().begin(), m.violations().end());
  for (const v1::LostHubs& x : m.lost())
    r.lost.push_back({{x.nodes().begin(), x.nodes().end()}, x.who(), 0, x.at()});
  for (const v1::RejoinedHubs& x : m.rejoined()) r.rejoined.push_back(RejoinedFromProto(x));
  return r;
}

}  // namespace percs
