// The hybrids of paper 003 section 4.3: shared memory inside the nodes, P2P or CAU between their
// leaders.
#include <utility>

#include "emulator/collectives/cau_collective.h"
#include "emulator/collectives/chain.h"
#include "emulator/collectives/p2p_collective.h"
#include "emulator/collectives/shm_collective.h"
#include "emulator/collectives/smartmap_collective.h"

namespace percs {
namespace {

// P2P channel of the leaders; areas of the node's shared memory.
constexpr std::uint8_t kLeaderChannel = 1;
constexpr std::uint8_t kReduceArea = 0, kBroadcastArea = 1, kRootBroadcastArea = 2;

TaskGroup LeaderGroup(Rank& rank) {
  const TaskPlacement& placement = rank.node().placement();
  return {0, placement.tasks_per_node, placement.nodes};
}
// Null: this task has no part in a level of leaders.
bool Leads(Rank& rank) { return rank.local() == 0 && rank.node().placement().nodes > 1; }

std::unique_ptr<Collective> LeaderCollective(Rank& rank, LeaderLayer layer, Operation operation) {
  if (!Leads(rank)) return nullptr;
  if (layer == LeaderLayer::kCau)
    return std::make_unique<CauCollective>(rank, LeaderGroup(rank), operation);
  return std::make_unique<P2pCollective>(rank, LeaderGroup(rank), *FindP2pAlgorithm(operation, ""),
                                         kLeaderChannel, rank.node().host().leader_eager_limit);
}

std::unique_ptr<Collective> LocalBroadcast(Rank& rank, std::uint8_t area, std::uint64_t bytes) {
  if (rank.node().placement().tasks_per_node == 1) return nullptr;
  if (bytes <= rank.node().host().shared_record)
    return std::make_unique<ShmTreeBroadcast>(rank, LocalGroup(rank), area);
  const int buffers = bytes >= rank.node().host().two_buffers_from ? 2 : 1;
  return std::make_unique<ShmFlatBroadcast>(rank, LocalGroup(rank), area, buffers);
}

// A copy of the result is the next level's input.
bool FromOutput(CollectiveCall& call) {
  call.input = call.output;
  return true;
}
bool AtRootZero(CollectiveCall& call) {
  call.root = 0;
  return true;
}
bool FromOutputAtRootZero(CollectiveCall& call) { return FromOutput(call) && AtRootZero(call); }
bool WithoutData(CollectiveCall& call) {
  call.bytes = 0;
  call.op = ReduceOp::kNop;
  call.type = OperandType::kInt32;
  return AtRootZero(call);
}

std::unique_ptr<Collective> MakeHybrid(Rank& rank, LeaderLayer layer, std::uint64_t bytes,
                                       bool (*first)(CollectiveCall&),
                                       bool (*next)(CollectiveCall&)) {
  std::vector<ChainLevel> levels;
  levels.push_back({"shm reduce",
                    std::make_unique<ShmReduce>(rank, LocalGroup(rank), kReduceArea, false),
                    first});
  if (layer == LeaderLayer::kCau) {
    levels.push_back({"CAU reduce", LeaderCollective(rank, layer, Operation::kReduce), next});
    levels.push_back(
        {"CAU broadcast", LeaderCollective(rank, layer, Operation::kBroadcast), first});
  } else {
    levels.push_back({"leaders", LeaderCollective(rank, layer, Operation::kAllreduce), next});
  }
  levels.push_back({"shm broadcast", LocalBroadcast(rank, kBroadcastArea, bytes), first});
  return std::make_unique<Chain>(rank, std::move(levels));
}

}  // namespace

std::unique_ptr<Collective> MakeCauAllreduce(Rank& rank, const TaskGroup& leaders) {
  std::vector<ChainLevel> levels(2);
  levels[0] = {"CAU reduce", std::make_unique<CauCollective>(rank, leaders, Operation::kReduce),
               AtRootZero};
  levels[1] = {"CAU broadcast",
               std::make_unique<CauCollective>(rank, leaders, Operation::kBroadcast), AtRootZero};
  return std::make_unique<Chain>(rank, std::move(levels));
}

std::unique_ptr<Collective> MakeCauBarrier(Rank& rank, const TaskGroup& leaders) {
  std::vector<ChainLevel> levels(2);
  levels[0] = {"CAU reduce", std::make_unique<CauCollective>(rank, leaders, Operation::kReduce),
               WithoutData};
  levels[1] = {"CAU broadcast",
               std::make_unique<CauCollective>(rank, leaders, Operation::kBroadcast), WithoutData};
  return std::make_unique<Chain>(rank, std::move(levels));
}

std::unique_ptr<Collective> MakeShmAllreduce(Rank& rank, const TaskGroup& group) {
  std::vector<ChainLevel> levels(2);
  levels[0] = {"shm reduce", std::make_unique<ShmReduce>(rank, group, kReduceArea, false),
               AtRootZero};
  levels[1] = {"shm broadcast", std::make_unique<ShmTreeBroadcast>(rank, group, kBroadcastArea),
               AtRootZero};
  return std::make_unique<Chain>(rank, std::move(levels));
}

std::unique_ptr<Collective> MakeSmartmapAllreduce(Rank& rank, const TaskGroup& group) {
  std::vector<ChainLevel> levels(2);
  levels[0] = {"smartmap reduce",
               std::make_unique<SmartmapCollective>(rank, group, Operation::kReduce, kReduceArea),
               AtRootZero};
  levels[1] = {
      "smartmap broadcast",
      std::make_unique<SmartmapCollective>(rank, group, Operation::kBroadcast, kBroadcastArea,
                                           SmartmapReduce::kAuto, SmartmapSource::kReceived),
      AtRootZero};
  return std::make_unique<Chain>(rank, std::move(levels));
}

std::unique_ptr<Collective> MakeHybridAllreduce(Rank& rank, LeaderLayer leaders,
                                                std::uint64_t bytes) {
  return MakeHybrid(rank, leaders, bytes, AtRootZero, FromOutputAtRootZero);
}

std::unique_ptr<Collective> MakeHybridBarrier(Rank& rank, LeaderLayer leaders) {
  return MakeHybrid(rank, leaders, 0, WithoutData, WithoutData);
}

std::unique_ptr<Collective> MakeHybridBroadcast(Rank& rank, LeaderLayer leaders,
                                                std::uint64_t bytes) {
  const TaskPlacement& placement = rank.node().placement();
  const NodeId node = placement.NodeOf(rank.number());
  // A root that is a leader itself needs no broadcast on its node first, but like the others one at
  // the end.
  const auto first_here = [placement, node](const CollectiveCall& call) {
    return placement.NodeOf(call.root) == node && placement.LocalOf(call.root) != 0;
  };
  std::vector<ChainLevel> levels(3);
  levels[0] = {"shm broadcast at root", LocalBroadcast(rank, kRootBroadcastArea, bytes),
               [placement, first_here](CollectiveCall& call) {
                 const bool here = first_here(call);
                 call.root = placement.LocalOf(call.root);
                 return here;
               }};
  levels[1] = {leaders == LeaderLayer::kCau ? "CAU broadcast" : "leaders",
               LeaderCollective(rank, leaders, Operation::kBroadcast),
               [placement](CollectiveCall& call) {
                 call.root = placement.NodeOf(call.root);
                 return true;
               }};
  levels[2] = {"shm broadcast", LocalBroadcast(rank, kBroadcastArea, bytes),
               [first_here](CollectiveCall& call) {
                 const bool here = first_here(call);
                 call.root = 0;
                 return !here;
               }};
  return std::make_unique<Chain>(rank, std::move(levels));
}

}  // namespace percs
