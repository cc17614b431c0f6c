// Hierarchical collectives of paper 002 section V-C: on the nodes by direct access to each other's
// memory or, to compare, by messages through shared memory; between nodes by messages of one leader
// each. Messages go as Open MPI's `tuned` component has them. The leader of a node is the task with
// the root's number on its node, so the root leads its own.
#include <memory>
#include <utility>

#include "emulator/collectives/chain.h"
#include "emulator/collectives/p2p_collective.h"
#include "emulator/collectives/smartmap_collective.h"

namespace percs {
namespace {

// P2P channels, and areas of the node's shared memory.
constexpr std::uint8_t kAmongLeadersChannel = 1, kReduceOnNode = 2, kBroadcastOnNode = 3;

std::unique_ptr<Collective> OnNode(Rank& rank, NodeLayer layer, Operation operation) {
  const std::uint8_t number = operation == Operation::kReduce ? kReduceOnNode : kBroadcastOnNode;
  if (layer == NodeLayer::kSmartmap) {
    return std::make_unique<SmartmapCollective>(rank, LocalGroup(rank), operation, number,
                                                SmartmapReduce::kAuto, SmartmapSource::kReceived);
  }
  return std::make_unique<P2pCollective>(rank, LocalGroup(rank),
                                         *FindP2pAlgorithm(operation, "openmpi"), number);
}

// Of all tasks with this one's number on their node; those that do not lead leave it out.
std::unique_ptr<Collective> AmongLeaders(Rank& rank, Operation operation) {
  const TaskPlacement& placement = rank.node().placement();
  return std::make_unique<P2pCollective>(
      rank, TaskGroup{rank.local(), placement.tasks_per_node, placement.nodes},
      *FindP2pAlgorithm(operation, "openmpi"), kAmongLeadersChannel,
      rank.node().host().leader_eager_limit);
}

bool AtLocalRoot(const TaskPlacement& placement, CollectiveCall& call) {
  call.root = placement.LocalOf(call.root);
  return true;
}

}  // namespace

std::unique_ptr<Collective> MakeHierarchicalReduce(Rank& rank, NodeLayer layer) {
  const TaskPlacement placement = rank.node().placement();
  // Where a leader has the sum of its node, unless it is the root.
  const auto partial = std::make_shared<std::vector<std::uint8_t>>();
  const auto sum = [partial, me = rank.number()](const CollectiveCall& call) {
    if (call.root == me || !call.input) return call.output;
    partial->resize(call.bytes);
    return partial->data();
  };
  std::vector<ChainLevel> levels(2);
  levels[0] = {"on nodes", OnNode(rank, layer, Operation::kReduce),
               [placement, sum](CollectiveCall& call) {
                 call.output = sum(call);
                 return AtLocalRoot(placement, call);
               }};
  levels[1] = {"leaders", AmongLeaders(rank, Operation::kReduce),
               [placement, sum, local = rank.local()](CollectiveCall& call) {
                 if (placement.LocalOf(call.root) != local) return false;
                 call.input = call.output = sum(call);
                 call.root = placement.NodeOf(call.root);
                 return true;
               }};
  return std::make_unique<Chain>(rank, std::move(levels));
}

std::unique_ptr<Collective> MakeHierarchicalBroadcast(Rank& rank, NodeLayer layer) {
  const TaskPlacement placement = rank.node().placement();
  std::vector<ChainLevel> levels(2);
  levels[0] = {"leaders", AmongLeaders(rank, Operation::kBroadcast),
               [placement, local = rank.local()](CollectiveCall& call) {
                 const bool leads = placement.LocalOf(call.root) == local;
                 call.root = placement.NodeOf(call.root);
                 return leads;
               }};
  levels[1] = {"on nodes", OnNode(rank, layer, Operation::kBroadcast),
               [placement](CollectiveCall& call) { return AtLocalRoot(placement, call); }};
  return std::make_unique<Chain>(rank, std::move(levels));
}

std::unique_ptr<Collective> MakeHierarchicalAllreduce(Rank& rank, NodeLayer layer) {
  const auto at_zero = [](CollectiveCall& call) {
    call.root = 0;
    return true;
  };
  std::vector<ChainLevel> levels(3);
  levels[0] = {"reduce on nodes", OnNode(rank, layer, Operation::kReduce), at_zero};
  levels[1] = {"leaders", AmongLeaders(rank, Operation::kAllreduce),
               [leads = rank.local() == 0](CollectiveCall& call) {
                 call.input = call.output;
                 return leads;
               }};
  levels[2] = {"broadcast on nodes", OnNode(rank, layer, Operation::kBroadcast), at_zero};
  return std::make_unique<Chain>(rank, std::move(levels));
}

}  // namespace percs
