#include "daemon/metrics/hub_metrics.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <utility>

#include "daemon/metrics/endpoint_metrics.h"
#include "daemon/metrics/metric_list.h"
#include "emulator/metrics/blade_counters.h"
#include "emulator/metrics/cau_counters.h"
#include "emulator/metrics/hfi_counters.h"
#include "fmt/format.h"

namespace percs {
namespace {

using Labels = MetricFamilies::Labels;

double Number(std::uint64_t value) { return static_cast<double>(value); }

// `LR12` of `sn0-d1-h3:LR12`.
std::string PortName(const std::string& link) { return link.substr(link.find(':') + 1); }

// N0 of a blade has a class of its own unless it is InfiniBand's, like G0 of a gateway.
std::string LinkClassLabel(const Topology& topology, LinkEnd end) {
  const LinkClass link_class = topology.ClassOfLink(end);
  if (end.node < topology.hubs() || link_class == LinkClass::kIb) return ClassName(link_class);
  return topology.is_blade(end.node) ? "N" : "G";
}

struct LinkTotal {
  VcStats sent;
  std::uint64_t credit_stall_ps = 0, crc_errors = 0, replays = 0, lanes_lost = 0;
  int up = 0;
  std::uint64_t downs = 0;

  void Add(const PortStats& port, bool is_up, std::uint64_t went_down) {
    sent.Add(port.sum());
    credit_stall_ps += port.credit_stall_ps;
    crc_errors += port.crc_errors;
    replays += port.replays;
    lanes_lost += port.lanes_lost;
    up += is_up ? 1 : 0;
    downs += went_down;
  }
};

void AddLink(const Labels& labels, const LinkTotal& link, MetricFamilies* families) {
  families->Add(metric::kLinkBytes, labels, Number(link.sent.bytes));
  families->Add(metric::kLinkPackets, labels, Number(link.sent.packets));
  families->Add(metric::kLinkFlits, labels, Number(link.sent.flits));
  families->Add(metric::kLinkStall, labels, InSeconds(Number(link.credit_stall_ps)));
  families->Add(metric::kLinkCrcErrors, labels, Number(link.crc_errors));
  families->Add(metric::kLinkReplays, labels, Number(link.replays));
  families->Add(metric::kLinkLanesLost, labels, Number(link.lanes_lost));
  families->Add(metric::kLinkUp, labels, link.up);
  families->Add(metric::kLinkDown, labels, Number(link.downs));
}

void AddChannels(const Labels& link, PortId port, const PortStats& stats,
                 MetricFamilies* families) {
  for (std::size_t vc = 0; vc < static_cast<std::size_t>(VcsOf(port)); ++vc) {
    Labels labels = link;
    labels.emplace_back("vc", std::to_string(vc));
    families->Add(metric::kVcBytes, labels, Number(stats.vc[vc].bytes));
    families->Add(metric::kVcPackets, labels, Number(stats.vc[vc].packets));
    families->Add(metric::kVcFlits, labels, Number(stats.vc[vc].flits));
  }
}

void AddLinks(const Topology& topology, const NodeState& state, MetricsDetail detail,
              MetricFamilies* families) {
  const std::string hub = topology.NodeName(state.node);
  std::map<std::string, LinkTotal> classes;
  for (PortId port = 0; port < kLinkPorts; ++port) {
    const LinkEnd peer = topology.Peer(state.node, port);
    if (peer.node == kNoNode) continue;
    const std::string name = PortName(topology.LinkName({state.node, port}));
    const std::string link_class = LinkClassLabel(topology, {state.node, port});
    const PortStats& stats = state.stats.ports[port];
    const bool up = (state.links_up & PortBit(port)) != 0;
    if (detail != MetricsDetail::kHub) {
      LinkTotal link;
      link.Add(stats, up, state.link_downs[port]);
      AddLink({{"hub", hub}, {"port", name}, {"class", link_class}}, link, families);
      families->Add(metric::kLinkInfo,
                    {{"hub", hub},
                     {"port", name},
                     {"peer", topology.NodeName(peer.node)},
                     {"peer_port", PortName(topology.LinkName(peer))}},
                    1);
      if (detail == MetricsDetail::kVc) {
        AddChannels({{"hub", hub}, {"port", name}, {"class", link_class}}, port, stats, families);
      }
      continue;
    }
    classes[link_class].Add(stats, up, state.link_downs[port]);
  }
  for (const auto& [name, total] : classes) {
    AddLink({{"hub", hub}, {"class", name}}, total, families);
  }
}

void AddService(const Labels& hub, const NodeStats& stats, MetricFamilies* families) {
  const std::pair<const char*, std::uint64_t> events[] = {
      {"request", stats.service_requests},
      {"answer", stats.service_answers},
      {"unanswered", stats.service_unanswered},
      {"wrong_partner", stats.service_wrong_partner}};
  for (const auto& [event, count] : events) {
    Labels labels = hub;
    labels.emplace_back("event", event);
    families->Add(metric::kService, labels, Number(count));
  }
  families->Add(metric::kServiceRoundTrip, hub, InSeconds(Number(stats.service_round_trip_ps)));
  std::uint64_t flits = 0;
  for (PortId port = 0; port < kLinkPorts; ++port) flits += stats.ports[port].service_flits;
  families->Add(metric::kServiceFlits, hub, Number(flits));
}

void AddCau(const Labels& hub, const NodeStats& stats, MetricFamilies* families) {
  const auto add = [&](const std::string& counter, std::uint64_t count) {
    Labels labels = hub;
    labels.emplace_back("counter", counter);
    families->Add(metric::kCau, labels, Number(count));
  };
  const auto named = stats.cau.begin() + kCauReductions;
  add("reductions", std::accumulate(stats.cau.begin(), named, std::uint64_t{0}));
  for (int i = 0; i < kCauReductions; ++i) {
    Labels labels = hub;
    labels.emplace_back("op", OpName(static_cast<ReduceOp>(i / kOperandTypes)));
    labels.emplace_back("dtype", TypeName(static_cast<OperandType>(i % kOperandTypes)));
    families->Add(metric::kCauOperations, labels, Number(stats.cau[static_cast<std::size_t>(i)]));
  }
  for (std::size_t i = kCauReductions; i < stats.cau.size(); ++i) {
    add(CauCounterNames()[i], stats.cau[i]);
  }
}

// Nothing of a hub whose windows nobody uses.
void AddHfi(const Labels& hub, const NodeStats& stats, MetricFamilies* families) {
  if (std::all_of(stats.hfi.begin(), stats.hfi.end(),
                  [](std::uint64_t count) { return count == 0; }))
    return;
  for (std::size_t i = 0; i < stats.hfi.size(); ++i) {
    Labels labels = hub;
    labels.emplace_back("hfi", std::to_string(i / kHfiCounters));
    labels.emplace_back("counter", HfiCounterName(static_cast<HfiCounter>(i % kHfiCounters)));
    families->Add(metric::kHfi, labels, Number(stats.hfi[i]));
  }
  for (const auto& [result, count] :
       {std::pair("hit", stats.nmmu_hits), std::pair("miss", stats.nmmu_misses)}) {
    Labels labels = hub;
    labels.emplace_back("result", result);
    families->Add(metric::kNmmu, labels, Number(count));
  }
}

// Nothing of a hub without devices, or whose devices nobody uses.
void AddPcie(const Labels& hub, const NodeStats& stats, MetricFamilies* families) {
  if (std::all_of(stats.pcie.begin(), stats.pcie.end(),
                  [](std::uint64_t count) { return count == 0; }))
    return;
  for (std::size_t i = 0; i < stats.pcie.size(); ++i) {
    Labels labels = hub;
    labels.emplace_back("port", std::to_string(i / kPcieCounters));
    labels.emplace_back("counter", PcieCounterName(static_cast<PcieCounter>(i % kPcieCounters)));
    families->Add(metric::kPcie, labels, Number(stats.pcie[i]));
  }
}

void AddNode(const Topology& topology, const NodeState& state, MetricFamilies* families) {
  const Labels hub = {{"hub", topology.NodeName(state.node)}};
  const NodeStats& stats = state.stats;
  families->Add(metric::kPacketsCreated, hub, Number(stats.packets_created));
  families->Add(metric::kPacketsDelivered, hub, Number(stats.packets_delivered));
  families->Add(metric::kBytesDelivered, hub, Number(stats.bytes_delivered));
  for (int i = 0; i < kDropReasons; ++i) {
    Labels labels = hub;
    labels.emplace_back("reason", DropReasonName(static_cast<DropReason>(i)));
    families->Add(metric::kPacketsDropped, labels,
                  Number(stats.packets_dropped[static_cast<std::size_t>(i)]));
  }
  families->Add(metric::kPacketsResent, hub, Number(stats.packets_resent));
  families->Add(metric::kMessagesDelivered, hub, Number(stats.messages_delivered));
  families->Add(metric::kMessagesFailed, hub, Number(stats.messages_failed));
  families->Add(metric::kPayloadErrors, hub, Number(stats.payload_errors));
  families->Add(metric::kAlerts, hub, Number(stats.alerts_raised));
  families->Add(metric::kTables, hub, Number(stats.tables_installed));
  families->Add(metric::kEpoch, hub, state.epoch);
  families->AddTimes(metric::kPacketLatency, hub, stats.packet_latency);
  families->AddTimes(metric::kMessageLatency, hub, stats.message_latency);
  if (state.node < topology.hubs()) {
    AddService(hub, stats, families);
    AddCau(hub, stats, families);
    AddHfi(hub, stats, families);
    AddPcie(hub, stats, families);
  }
  if (!topology.is_blade(state.node)) return;
  for (std::size_t i = 0; i < kBladeCounters; ++i) {
    Labels labels = hub;
    labels.emplace_back("counter", BladeCounterNames()[i]);
    families->Add(metric::kBlade, labels, Number(stats.blade[i]));
  }
}

}  // namespace

absl::StatusOr<MetricsDetail> ParseMetricsDetail(const std::string& text) {
  if (text == "hub") return MetricsDetail::kHub;
  if (text == "port") return MetricsDetail::kPort;
  if (text == "vc") return MetricsDetail::kVc;
  return absl::InvalidArgumentError(
      fmt::format("metrics detail '{}'; it is hub (sums by class of link), port or vc", text));
}

void AddHubMetrics(const HostState& host, const DetailOfHubs& detail, MetricFamilies* families) {
  families->Add(metric::kVirtualTime, {}, InSeconds(static_cast<double>(host.now)));
  families->Add(metric::kReconnects, {}, Number(host.reconnects));
  AddEndpointMetrics(host.endpoints, families);
  if (!host.topology) return;
  for (const NodeState& state : host.nodes) {
    AddLinks(*host.topology, state, detail.Of(state.node), families);
    AddNode(*host.topology, state, families);
  }
}

}  // namespace percs
