#include "daemon/metrics/hub_metrics.h"

#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "daemon/metrics/endpoint_metrics.h"
#include "daemon/metrics/metric_list.h"
#include "emulator/metrics/named_counters.h"
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
  PortStats stats;
  int up = 0;
  std::uint64_t downs = 0;

  void Add(const PortStats& port, bool is_up, std::uint64_t went_down) {
    stats.vc[0].Add(port.sum());
    AddRows(kPortCounters, port, &stats);
    up += is_up ? 1 : 0;
    downs += went_down;
  }
};

void AddLink(const Labels& labels, const LinkTotal& link, MetricFamilies* families) {
  families->Add(metric::kLinkBytes, labels, Number(link.stats.vc[0].bytes));
  families->Add(metric::kLinkPackets, labels, Number(link.stats.vc[0].packets));
  families->Add(metric::kLinkFlits, labels, Number(link.stats.vc[0].flits));
  families->Add(metric::kLinkStall, labels, InSeconds(Number(link.stats.credit_stall_ps)));
  families->Add(metric::kLinkCrcErrors, labels, Number(link.stats.crc_errors));
  families->Add(metric::kLinkReplays, labels, Number(link.stats.replays));
  families->Add(metric::kLinkLanesLost, labels, Number(link.stats.lanes_lost));
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

// Values of several labels are the last parts of the counter's key.
Labels LabelsOf(const Labels& hub, const NamedCounter& counter) {
  Labels labels = hub;
  const CounterMetric& metric = counter.row->metric;
  if (metric.labels == nullptr) return labels;
  std::vector<std::string> names = absl::StrSplit(metric.labels, ','), values;
  if (metric.value != nullptr) {
    values = {metric.value};
  } else if (names.size() == 1) {
    values = {counter.key};
  } else {
    values = absl::StrSplit(counter.key, metric.between);
  }
  const std::size_t first = values.size() - names.size();
  for (std::size_t i = 0; i < names.size(); ++i) labels.emplace_back(names[i], values[first + i]);
  return labels;
}

bool IsAt(CounterPlace place, const Topology& topology, NodeId node) {
  return place == CounterPlace::kEveryNode ||
         (place == CounterPlace::kHub ? node < topology.hubs() : topology.is_blade(node));
}

// Every counter that has a metric: nothing of mechanisms that the node does not have or use.
void AddCounters(const Topology& topology, const Labels& hub, const NodeState& state,
                 MetricFamilies* families) {
  std::set<std::string_view> used;
  for (const NamedCounter& counter : NamedCounters()) {
    if (counter.Of(state.stats) != 0) used.insert(counter.metric);
  }
  for (const NamedCounter& counter : NamedCounters()) {
    const CounterMetric& metric = counter.row->metric;
    if (counter.metric.empty() || !IsAt(metric.place, topology, state.node)) continue;
    if (metric.if_used && !used.contains(counter.metric)) continue;
    const double value = Number(counter.Of(state.stats));
    const char* help = metric.help != nullptr ? metric.help : counter.row->help;
    families->Add({counter.metric.c_str(), metric::kCounter, help}, LabelsOf(hub, counter),
                  counter.row->unit == CounterUnit::kPicoseconds ? InSeconds(value) : value);
  }
}

// Sums that a hub has beside its counters.
void AddSums(const Labels& hub, const NodeStats& stats, MetricFamilies* families) {
  std::uint64_t flits = 0;
  for (PortId port = 0; port < kLinkPorts; ++port) flits += stats.ports[port].service_flits;
  families->Add(metric::kServiceFlits, hub, Number(flits));
  const NamedCounter& cau = *CountersOf("cau").back();
  Labels reductions = hub;
  reductions.emplace_back("counter", "reductions");
  families->Add({cau.metric.c_str(), metric::kCounter, cau.row->help}, reductions,
                Number(std::accumulate(stats.cau.begin(), stats.cau.begin() + kCauReductions,
                                       std::uint64_t{0})));
}

void AddNode(const Topology& topology, const NodeState& state, MetricFamilies* families) {
  const Labels hub = {{"hub", topology.NodeName(state.node)}};
  AddCounters(topology, hub, state, families);
  if (state.node < topology.hubs()) AddSums(hub, state.stats, families);
  families->Add(metric::kEpoch, hub, state.epoch);
  families->AddTimes(metric::kPacketLatency, hub, state.stats.packet_latency);
  families->AddTimes(metric::kMessageLatency, hub, state.stats.message_latency);
}

}  // namespace

absl::StatusOr<MetricsDetail> ParseMetricsDetail(const std::string& text) {
  if (text == "hub") return MetricsDetail::kHub;
  if (text == "port") return MetricsDetail::kPort;
  if (text == "vc") return MetricsDetail::kVc;
  return absl::InvalidArgumentError(
      fmt::format("metrics detail '{}': expected hub (sums per link class), port or vc", text));
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
