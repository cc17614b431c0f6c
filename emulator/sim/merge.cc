// Folds the results of nodes into the result of a run, and checks what every run must obey.
#include <algorithm>
#include <numeric>

#include "emulator/sim/run.h"
#include "fmt/format.h"

namespace percs {
namespace {

void AddStats(NodeStats& total, NodeStats node) {
  std::vector<std::uint64_t> values;
  node.Visit([&values](std::uint64_t v) { values.push_back(v); });
  const std::uint64_t packet_max = std::max(total.packet_latency.max, node.packet_latency.max);
  const std::uint64_t message_max = std::max(total.message_latency.max, node.message_latency.max);
  std::size_t i = 0;
  total.Visit([&](std::uint64_t& v) { v += values[i++]; });
  total.packet_latency.max = packet_max;
  total.message_latency.max = message_max;
}

void Utilisation(const Scenario& scenario, const Topology& topology, const std::vector<NodeResult>& nodes,
                 RunResult& result) {
  for (const NodeResult& node : nodes) {
    for (PortId port = 0; port < kServicePort; ++port) {
      const int c = static_cast<int>(ClassOf(port));
      if (!IsHfi(port) && !topology.connected(node.node, port)) continue;
      const std::uint64_t flits = node.stats.ports[port].flits;
      const double busy = static_cast<double>(flits) *
                          static_cast<double>(scenario.parameters.link(ClassOf(port)).flit_time);
      const double share = result.virtual_time > 0 ? busy / static_cast<double>(result.virtual_time) : 0;
      ++result.links[c];
      result.utilisation_mean[c] += share;
      result.utilisation_max[c] = std::max(result.utilisation_max[c], share);
      (IsHfi(port) ? result.hfi_flits : result.flit_hops) += flits;
      if (!IsHfi(port)) result.packet_hops += node.stats.ports[port].packets;
    }
  }
  for (int c = 0; c < kLinkClasses; ++c) {
    if (result.links[c]) result.utilisation_mean[c] /= static_cast<double>(result.links[c]);
  }
}

// Conservation (docs/semantics.md rule 17) in flits and in tails.
void CheckConservation(const Scenario& scenario, RunResult& result) {
  const NodeStats& t = result.total;
  const auto sum = [](const auto& values) {
    return std::accumulate(values.begin(), values.end(), std::uint64_t{0});
  };
  const auto balance = [&](const char* what, std::uint64_t created, std::uint64_t synthesised,
                           std::uint64_t delivered, std::uint64_t dropped) {
    const std::uint64_t in = created + synthesised, out = delivered + dropped;
    if (in == out || (scenario.stop_at > 0 && in > out)) return;
    result.violations.push_back(
        fmt::format("conservation of {}: {} created + {} synthesised, but {} delivered + {} dropped", what,
                    created, synthesised, delivered, dropped));
  };
  balance("flits", t.flits_created, t.flits_synthesised, t.flits_delivered, sum(t.flits_dropped));
  balance("packets", t.packets_created, t.packets_synthesised, t.packets_delivered, sum(t.packets_dropped));
}

// Payload bytes as they were sent, flits in order, VCs in their place, credits back where they belong.
void CheckNodes(const Scenario& scenario, const Topology& topology, const std::vector<NodeResult>& nodes,
                RunResult& result) {
  const auto violation = [&result](std::string text) { result.violations.push_back(std::move(text)); };
  if (result.total.payload_errors > 0) {
    violation(fmt::format("payload: {} packets arrived with wrong bytes", result.total.payload_errors));
  }
  for (const NodeResult& node : nodes) {
    const std::string name = topology.NodeName(node.node);
    if (node.flits_out_of_order > 0) {
      violation(fmt::format("order of flits: {} runs of flits reached {} out of their place in a packet",
                            node.flits_out_of_order, name));
    }
    if (node.vcs_out_of_place > 0) {
      violation(fmt::format("VC positions: {} packets reached {} on a VC out of its place",
                            node.vcs_out_of_place, name));
    }
    // A run cut short still has packets that hold credits.
    if (node.credits_missing > 0 && scenario.stop_at == 0) {
      violation(fmt::format("conservation of credits: {} is off by {}", name, node.credits_missing));
    }
  }
}

}  // namespace

RunResult MergeResults(const Scenario& scenario, const Topology& topology, std::vector<NodeResult> nodes,
                       std::vector<Reroute> reroutes, std::uint64_t windows) {
  std::sort(nodes.begin(), nodes.end(), [](const auto& a, const auto& b) { return a.node < b.node; });
  RunResult result;
  result.scenario = scenario.name;
  result.nodes = nodes.size();
  result.windows = windows;
  result.reroutes = std::move(reroutes);
  DigestStream digest;
  for (NodeResult& node : nodes) {
    digest.Add(node.node);
    digest.Add(node.digest);
    AddStats(result.total, node.stats);
    result.virtual_time = std::max(result.virtual_time, node.last_event);
    result.failed.insert(result.failed.end(), node.failed.begin(), node.failed.end());
    result.ranks.insert(result.ranks.end(), node.ranks.begin(), node.ranks.end());
    result.programs.insert(result.programs.end(), node.programs.begin(), node.programs.end());
    for (const auto& [epoch, time] : node.first_rerouted) {
      for (Reroute& reroute : result.reroutes) {
        if (reroute.epoch == epoch) reroute.first_packet = std::min(reroute.first_packet, time);
      }
    }
  }
  std::sort(result.ranks.begin(), result.ranks.end(),
            [](const RankResult& a, const RankResult& b) { return a.rank < b.rank; });
  result.digest = digest.Finish();
  Utilisation(scenario, topology, nodes, result);
  CheckConservation(scenario, result);
  CheckNodes(scenario, topology, nodes, result);
  return result;
}

}  // namespace percs
