#include "daemon/sync/answer_codec.h"

#include <algorithm>
#include <limits>

#include "emulator/cell/eib.h"
#include "fmt/format.h"
#include "proto/convert/counters.h"
#include "proto/convert/node_result.h"

namespace percs {

namespace {

void InFlightToProto(const InFlight& in_flight, v1::NodeSnapshot* message) {
  for (const TreeInFlight& tree : in_flight.trees) {
    v1::TreeInFlight* const to = message->add_trees();
    to->set_tree(tree.tree);
    to->set_vertex(tree.vertex);
    to->set_held(tree.held);
    for (const TreePacketsInFlight& sent : tree.sent) {
      to->add_neighbors(sent.neighbor);
      to->add_packets(sent.packets);
    }
  }
  for (const cell::SpeInFlight& spe : in_flight.spes) {
    v1::SpeInFlight* const to = message->add_spes();
    to->set_spe(spe.spe);
    to->set_queued(spe.queued);
    for (const cell::DmaMove& move : spe.moves) {
      to->add_moves(move.cell);
      to->add_moves(move.unit);
      to->add_moves(move.out ? 1 : 0);
      to->add_moves(move.commands);
    }
  }
}

absl::Status InFlightFromProto(const v1::NodeSnapshot& message, InFlight* in_flight) {
  for (const v1::TreeInFlight& tree : message.trees()) {
    constexpr std::uint32_t kIdMax = std::numeric_limits<std::uint16_t>::max();
    if (tree.tree() > kIdMax || tree.vertex() > kIdMax) {
      return absl::InvalidArgumentError(
          fmt::format("node {} has vertex {} of tree {}; both are 0..{}", message.node(),
                      tree.vertex(), tree.tree(), kIdMax));
    }
    if (tree.neighbors_size() != tree.packets_size()) {
      return absl::InvalidArgumentError(fmt::format(
          "vertex {} of tree {} in node {} has {} neighbours and {} numbers of packets",
          tree.vertex(), tree.tree(), message.node(), tree.neighbors_size(), tree.packets_size()));
    }
    TreeInFlight& to = in_flight->trees.emplace_back();
    to.tree = static_cast<CauTreeId>(tree.tree());
    to.vertex = static_cast<std::uint16_t>(tree.vertex());
    to.held = tree.held();
    for (int i = 0; i < tree.neighbors_size(); ++i)
      to.sent.push_back({static_cast<std::uint16_t>(tree.neighbors(i)), tree.packets(i)});
  }
  for (const v1::SpeInFlight& spe : message.spes()) {
    if (spe.moves_size() % 4 != 0) {
      return absl::InvalidArgumentError(
          fmt::format("SPE {} of node {} has {} numbers of moves; each move has 4", spe.spe(),
                      message.node(), spe.moves_size()));
    }
    if (spe.spe() >= cell::kSpes) {
      return absl::InvalidArgumentError(fmt::format("node {} has an SPE {}; there are 0..{}",
                                                    message.node(), spe.spe(), cell::kSpes - 1));
    }
    cell::SpeInFlight& to = in_flight->spes.emplace_back();
    to.spe = static_cast<std::uint8_t>(spe.spe());
    to.queued = static_cast<std::uint8_t>(spe.queued());
    for (int i = 0; i < spe.moves_size(); i += 4) {
      if (spe.moves(i) >= cell::kCells || spe.moves(i + 1) >= cell::kUnits) {
        return absl::InvalidArgumentError(
            fmt::format("SPE {} of node {} moves data with unit {} of Cell {}; there are units "
                        "0..{} of Cells 0..{}",
                        spe.spe(), message.node(), spe.moves(i + 1), spe.moves(i), cell::kUnits - 1,
                        cell::kCells - 1));
      }
      to.moves.push_back({static_cast<std::uint8_t>(spe.moves(i)),
                          static_cast<std::uint8_t>(spe.moves(i + 1)), spe.moves(i + 2) != 0,
                          static_cast<std::uint8_t>(spe.moves(i + 3))});
    }
  }
  return absl::OkStatus();
}

}  // namespace

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
  InFlightToProto(state.in_flight, message);
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
  if (absl::Status status = InFlightFromProto(message, &state.in_flight); !status.ok())
    return status;
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
