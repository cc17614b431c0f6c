#include "daemon/sync/answer_codec.h"

#include <algorithm>
#include <limits>

#include "fmt/format.h"
#include "proto/convert/counters.h"
#include "proto/convert/node_result.h"

namespace percs {

absl::Status CheckOwner(const Placement& placement, std::uint32_t process, std::uint32_t node,
                        const char* what) {
  const std::size_t nodes = placement.process_of_node.size();
  if (node < nodes && placement.process_of_node[node] == process) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("process {} sent {} of node {}, which it does not have; the fabric has {} nodes",
                  process, what, node, nodes));
}

void NodeStateToProto(const NodeState& state, v1::NodeSnapshot* message) {
  message->set_node(state.node);
  PackStats(state.stats, message->mutable_stats());
  message->set_epoch(state.epoch);
  message->set_links_up(state.links_up);
  PackTallies(state.tallies, message->mutable_tallies());
  for (const auto& [epoch, time] : state.first_rerouted) {
    message->add_rerouted_epochs(epoch);
    message->add_rerouted_times(time);
  }
  for (const RankNow& rank : state.ranks) {
    message->add_ranks(rank.rank);
    message->mutable_rank_states()->push_back(static_cast<char>(rank.state));
  }
}

absl::StatusOr<NodeState> NodeStateFromProto(const v1::NodeSnapshot& message) {
  auto stats = UnpackStats(message.stats());
  if (!stats.ok()) return stats.status();
  auto tallies = UnpackTallies(message.tallies());
  if (!tallies.ok()) return tallies.status();
  NodeState state{message.node(), *stats, message.links_up(), message.epoch(), *std::move(tallies)};
  const int rerouted = std::min(message.rerouted_epochs_size(), message.rerouted_times_size());
  for (int i = 0; i < rerouted; ++i)
    state.first_rerouted.emplace_back(message.rerouted_epochs(i), message.rerouted_times(i));
  const std::string& states = message.rank_states();
  if (states.size() != static_cast<std::size_t>(message.ranks_size())) {
    return absl::InvalidArgumentError(fmt::format("node {} has {} ranks and {} states of ranks",
                                                  message.node(), message.ranks_size(),
                                                  states.size()));
  }
  for (std::size_t i = 0; i < states.size(); ++i) {
    const auto number = static_cast<unsigned char>(states[i]);
    if (number >= kRankStates) {
      return absl::InvalidArgumentError(fmt::format("rank {} of node {} has the state {}; 0..{}",
                                                    message.ranks(static_cast<int>(i)),
                                                    message.node(), number, kRankStates - 1));
    }
    state.ranks.push_back({message.ranks(static_cast<int>(i)), static_cast<RankState>(number)});
  }
  return state;
}

void WaitEdgesToProto(const std::vector<WaitEdge>& edges, v1::WaitEdges* message) {
  for (const WaitEdge& edge : edges) {
    v1::WaitEdge* e = message->add_edges();
    e->set_node(edge.node);
    e->set_input(edge.input);
    e->set_output(edge.output);
    e->set_input_vc(edge.input_vc);
    e->set_output_vc(edge.output_vc);
  }
}

absl::StatusOr<std::vector<WaitEdge>> WaitEdgesFromProto(const v1::WaitEdges& message) {
  constexpr std::uint32_t kPortMax = std::numeric_limits<PortId>::max();
  constexpr std::uint32_t kVcMax = std::numeric_limits<VcId>::max();
  std::vector<WaitEdge> edges;
  for (const v1::WaitEdge& e : message.edges()) {
    if (e.input() > kPortMax || e.output() > kPortMax || e.input_vc() > kVcMax ||
        e.output_vc() > kVcMax) {
      return absl::InvalidArgumentError(fmt::format(
          "a packet of node {} waits in port {} VC {} for port {} VC {}; ports are "
          "0..{} and virtual channels 0..{}",
          e.node(), e.input(), e.input_vc(), e.output(), e.output_vc(), kPortMax, kVcMax));
    }
    edges.push_back({e.node(), static_cast<PortId>(e.input()), static_cast<PortId>(e.output()),
                     static_cast<VcId>(e.input_vc()), static_cast<VcId>(e.output_vc())});
  }
  return edges;
}

}  // namespace percs
