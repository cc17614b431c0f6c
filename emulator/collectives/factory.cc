#include "emulator/collectives/factory.h"

#include "emulator/collectives/chain.h"
#include "emulator/collectives/p2p_collective.h"
#include "emulator/collectives/shm_collective.h"
#include "emulator/collectives/smartmap_collective.h"
#include "fmt/format.h"

namespace percs {
namespace {

// The instance that the loop calls.
constexpr std::uint8_t kMainChannel = 0;
constexpr std::uint8_t kMainArea = 0;

TaskGroup All(const CollectiveWorkload& workload) { return {0, 1, workload.placement.tasks()}; }

using Make = std::unique_ptr<Collective> (*)(const CollectiveWorkload& workload, Rank& rank);
struct Named {
  CollectiveName name;
  Make make;
  bool one_node;  // through its shared memory only
};

std::unique_ptr<Collective> Smartmap(const CollectiveWorkload& workload, Rank& rank, Operation operation,
                                     SmartmapReduce reduce = SmartmapReduce::kAuto) {
  return std::make_unique<SmartmapCollective>(rank, All(workload), operation, kMainArea, reduce);
}

const std::vector<Named>& Others() {
  using W = const CollectiveWorkload&;
  using C = std::unique_ptr<Collective>;
  constexpr auto kReduceThenBroadcast = [](W w, Rank& r) -> C { return MakeShmAllreduce(r, All(w)); };
  static const std::vector<Named> kOthers{
      {{Operation::kBarrier, "shm:tree", "reduce and broadcast without data, through shared memory"},
       kReduceThenBroadcast, true},
      {{Operation::kBroadcast, "shm:tree", "binary tree through shared records"},
       [](W w, Rank& r) -> C { return std::make_unique<ShmTreeBroadcast>(r, All(w), kMainArea); }, true},
      {{Operation::kBroadcast, "shm:one-buffer", "all read one shared buffer"},
       [](W w, Rank& r) -> C { return std::make_unique<ShmFlatBroadcast>(r, All(w), kMainArea, 1); }, true},
      {{Operation::kBroadcast, "shm:two-buffers", "all read one of two shared buffers in turn"},
       [](W w, Rank& r) -> C { return std::make_unique<ShmFlatBroadcast>(r, All(w), kMainArea, 2); }, true},
      {{Operation::kBroadcast, "hybrid:p2p", "shared memory on nodes, messages between their leaders"},
       [](W w, Rank& r) -> C { return MakeHybridBroadcast(r, LeaderLayer::kP2p, w.bytes); }, false},
      {{Operation::kReduce, "shm:tree", "binary tree through shared records"},
       [](W w, Rank& r) -> C { return std::make_unique<ShmReduce>(r, All(w), kMainArea, false); }, true},
      {{Operation::kReduce, "shm:blocking", "the same, by threads that wait"},
       [](W w, Rank& r) -> C { return std::make_unique<ShmReduce>(r, All(w), kMainArea, true); }, true},
      {{Operation::kAllreduce, "shm:tree", "reduce, then broadcast, through shared records"},
       kReduceThenBroadcast, true},
      {{Operation::kBroadcast, "smartmap", "out of the root's memory, by direct access"},
       [](W w, Rank& r) -> C { return Smartmap(w, r, Operation::kBroadcast); }, true},
      {{Operation::kReduce, "smartmap:auto", "into the root's memory: serial, from 1024 bytes on parallel"},
       [](W w, Rank& r) -> C { return Smartmap(w, r, Operation::kReduce); }, true},
      {{Operation::kReduce, "smartmap:serial", "into the root's memory, one after the other"},
       [](W w, Rank& r) -> C { return Smartmap(w, r, Operation::kReduce, SmartmapReduce::kSerial); }, true},
      {{Operation::kReduce, "smartmap:parallel", "into the root's memory, each a part for all"},
       [](W w, Rank& r) -> C { return Smartmap(w, r, Operation::kReduce, SmartmapReduce::kParallel); }, true},
      {{Operation::kAllreduce, "smartmap", "reduce, then broadcast, by direct access"},
       [](W w, Rank& r) -> C { return MakeSmartmapAllreduce(r, All(w)); }, true},
      {{Operation::kAlltoall, "smartmap", "out of all memories, by direct access"},
       [](W w, Rank& r) -> C { return Smartmap(w, r, Operation::kAlltoall); }, true},
      {{Operation::kAllreduce, "hybrid:p2p", "shared memory on nodes, messages between their leaders"},
       [](W, Rank& r) -> C { return MakeHybridAllreduce(r, LeaderLayer::kP2p); }, false},
  };
  return kOthers;
}

std::vector<CollectiveName> MakeNames() {
  std::vector<CollectiveName> names;
  for (const P2pAlgorithm& algorithm : P2pAlgorithms()) {
    names.push_back({algorithm.operation, fmt::format("p2p:{}", algorithm.name), "active messages"});
  }
  for (const Named& other : Others()) names.push_back(other.name);
  return names;
}

const Named* FindOther(const CollectiveName& name) {
  for (const Named& other : Others()) {
    if (other.name.operation == name.operation && other.name.name == name.name) return &other;
  }
  return nullptr;
}

// A layer alone stands for its first algorithm.
bool Means(const std::string& asked, const std::string& name) {
  return asked.empty() || asked == name || asked == name.substr(0, name.find(':'));
}

const CollectiveName* Find(Operation operation, const std::string& asked) {
  for (const CollectiveName& name : CollectiveNames()) {
    if (name.operation == operation && Means(asked, name.name)) return &name;
  }
  return nullptr;
}

}  // namespace

const std::vector<CollectiveName>& CollectiveNames() {
  static const std::vector<CollectiveName> kNames = MakeNames();
  return kNames;
}

absl::Status CheckCollectiveName(const CollectiveWorkload& workload) {
  if (const CollectiveName* name = Find(workload.operation, workload.algorithm)) {
    const Named* other = FindOther(*name);
    if (!other || !other->one_node || workload.placement.nodes == 1) return absl::OkStatus();
    return absl::InvalidArgumentError(fmt::format("{} {} is for tasks of one node, and these are on {}",
                                                  name->name, OperationName(workload.operation),
                                                  workload.placement.nodes));
  }
  std::string all;
  for (const CollectiveName& name : CollectiveNames()) {
    if (name.operation == workload.operation) all += (all.empty() ? "" : ", ") + name.name;
  }
  return absl::InvalidArgumentError(fmt::format("there is no {} algorithm '{}'; there are {}",
                                                OperationName(workload.operation), workload.algorithm, all));
}

std::unique_ptr<Collective> MakeCollective(const CollectiveWorkload& workload, Rank& rank) {
  const CollectiveName& name = *Find(workload.operation, workload.algorithm);
  if (const Named* other = FindOther(name)) return other->make(workload, rank);
  const std::string algorithm = name.name.substr(name.name.find(':') + 1);
  return std::make_unique<P2pCollective>(rank, All(workload),
                                         *FindP2pAlgorithm(workload.operation, algorithm), kMainChannel);
}

}  // namespace percs
