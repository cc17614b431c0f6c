#include "emulator/collectives/factory.h"

#include "emulator/cau/cau_reduction.h"
#include "emulator/collectives/cau_collective.h"
#include "emulator/collectives/chain.h"
#include "emulator/collectives/p2p_collective.h"
#include "emulator/collectives/shm_collective.h"
#include "emulator/collectives/smartmap_collective.h"
#include "emulator/runtime/message_port.h"
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
  enum class Fits : std::uint8_t {
    kAll,
    kOneNode,         // through its shared memory only
    kOneTaskPerNode,  // of several tasks on a node one would have to lead
  } fits = Fits::kAll;
  bool uses_tree = false;  // of CAUs
};
using Fits = Named::Fits;

std::unique_ptr<Collective> Smartmap(const CollectiveWorkload& workload, Rank& rank,
                                     Operation operation,
                                     SmartmapReduce reduce = SmartmapReduce::kAuto) {
  return std::make_unique<SmartmapCollective>(rank, All(workload), operation, kMainArea, reduce);
}

std::unique_ptr<Collective> Cau(const CollectiveWorkload& workload, Rank& rank,
                                Operation operation) {
  return std::make_unique<CauCollective>(rank, All(workload), operation);
}

// Through the memory of one node.
std::vector<Named> OnOneNode() {
  using W = const CollectiveWorkload&;
  using C = std::unique_ptr<Collective>;
  constexpr auto kReduceThenBroadcast = [](W w, Rank& r) -> C {
    return MakeShmAllreduce(r, All(w));
  };
  return {
      {{Operation::kBarrier, "shm:tree",
        "reduce and broadcast without data, through shared memory"},
       kReduceThenBroadcast,
       Fits::kOneNode},
      {{Operation::kBroadcast, "shm:tree", "binary tree through shared records"},
       [](W w, Rank& r) -> C { return std::make_unique<ShmTreeBroadcast>(r, All(w), kMainArea); },
       Fits::kOneNode},
      {{Operation::kBroadcast, "shm:one-buffer", "all read one shared buffer"},
       [](W w, Rank& r) -> C {
         return std::make_unique<ShmFlatBroadcast>(r, All(w), kMainArea, 1);
       },
       Fits::kOneNode},
      {{Operation::kBroadcast, "shm:two-buffers", "all read one of two shared buffers in turn"},
       [](W w, Rank& r) -> C {
         return std::make_unique<ShmFlatBroadcast>(r, All(w), kMainArea, 2);
       },
       Fits::kOneNode},
      {{Operation::kReduce, "shm:tree", "binary tree through shared records"},
       [](W w, Rank& r) -> C { return std::make_unique<ShmReduce>(r, All(w), kMainArea, false); },
       Fits::kOneNode},
      {{Operation::kReduce, "shm:blocking", "the same, by threads that wait"},
       [](W w, Rank& r) -> C { return std::make_unique<ShmReduce>(r, All(w), kMainArea, true); },
       Fits::kOneNode},
      {{Operation::kAllreduce, "shm:tree", "reduce, then broadcast, through shared records"},
       kReduceThenBroadcast,
       Fits::kOneNode},
      {{Operation::kBroadcast, "smartmap", "out of the root's memory, by direct access"},
       [](W w, Rank& r) -> C { return Smartmap(w, r, Operation::kBroadcast); },
       Fits::kOneNode},
      {{Operation::kReduce, "smartmap:auto",
        "into the root's memory: serial, from 1024 bytes on parallel"},
       [](W w, Rank& r) -> C { return Smartmap(w, r, Operation::kReduce); },
       Fits::kOneNode},
      {{Operation::kReduce, "smartmap:serial", "into the root's memory, one after the other"},
       [](W w, Rank& r) -> C {
         return Smartmap(w, r, Operation::kReduce, SmartmapReduce::kSerial);
       },
       Fits::kOneNode},
      {{Operation::kReduce, "smartmap:parallel", "into the root's memory, each a part for all"},
       [](W w, Rank& r) -> C {
         return Smartmap(w, r, Operation::kReduce, SmartmapReduce::kParallel);
       },
       Fits::kOneNode},
      {{Operation::kAllreduce, "smartmap", "reduce, then broadcast, by direct access"},
       [](W w, Rank& r) -> C { return MakeSmartmapAllreduce(r, All(w)); },
       Fits::kOneNode},
      {{Operation::kAlltoall, "smartmap", "out of all memories, by direct access"},
       [](W w, Rank& r) -> C { return Smartmap(w, r, Operation::kAlltoall); },
       Fits::kOneNode},
  };
}

// Between nodes, with or without a part on each.
std::vector<Named> AcrossNodes() {
  using W = const CollectiveWorkload&;
  using C = std::unique_ptr<Collective>;
  return {
      {{Operation::kBroadcast, "hybrid:p2p",
        "shared memory on nodes, messages between their leaders"},
       [](W w, Rank& r) -> C { return MakeHybridBroadcast(r, LeaderLayer::kP2p, w.bytes); },
       Fits::kAll},
      {{Operation::kBroadcast, "hybrid:cau",
        "shared memory on nodes, a tree of CAUs between their leaders"},
       [](W w, Rank& r) -> C { return MakeHybridBroadcast(r, LeaderLayer::kCau, w.bytes); },
       Fits::kAll,
       true},
      {{Operation::kAllreduce, "hybrid:cau",
        "shared memory on nodes, a tree of CAUs between their leaders"},
       [](W w, Rank& r) -> C { return MakeHybridAllreduce(r, LeaderLayer::kCau, w.bytes); },
       Fits::kAll,
       true},
      {{Operation::kAllreduce, "hybrid:p2p",
        "shared memory on nodes, messages between their leaders"},
       [](W w, Rank& r) -> C { return MakeHybridAllreduce(r, LeaderLayer::kP2p, w.bytes); },
       Fits::kAll},
      {{Operation::kBarrier, "hybrid:cau",
        "shared memory on nodes, a tree of CAUs between their leaders"},
       [](W, Rank& r) -> C { return MakeHybridBarrier(r, LeaderLayer::kCau); },
       Fits::kAll,
       true},
      {{Operation::kBarrier, "hybrid:p2p",
        "shared memory on nodes, messages between their leaders"},
       [](W, Rank& r) -> C { return MakeHybridBarrier(r, LeaderLayer::kP2p); },
       Fits::kAll},
      {{Operation::kReduce, "hierarchical:smartmap",
        "direct access to memory on nodes, messages between their leaders"},
       [](W, Rank& r) -> C { return MakeHierarchicalReduce(r, NodeLayer::kSmartmap); }},
      {{Operation::kReduce, "hierarchical:p2p", "messages on nodes, and between their leaders"},
       [](W, Rank& r) -> C { return MakeHierarchicalReduce(r, NodeLayer::kP2p); }},
      {{Operation::kBroadcast, "hierarchical:smartmap",
        "direct access to memory on nodes, messages between their leaders"},
       [](W, Rank& r) -> C { return MakeHierarchicalBroadcast(r, NodeLayer::kSmartmap); }},
      {{Operation::kBroadcast, "hierarchical:p2p", "messages on nodes, and between their leaders"},
       [](W, Rank& r) -> C { return MakeHierarchicalBroadcast(r, NodeLayer::kP2p); }},
      {{Operation::kAllreduce, "hierarchical:smartmap",
        "direct access to memory on nodes, messages between their leaders"},
       [](W, Rank& r) -> C { return MakeHierarchicalAllreduce(r, NodeLayer::kSmartmap); }},
      {{Operation::kAllreduce, "hierarchical:p2p", "messages on nodes, and between their leaders"},
       [](W, Rank& r) -> C { return MakeHierarchicalAllreduce(r, NodeLayer::kP2p); }},
      {{Operation::kReduce, "cau", "combined by a tree of CAUs"},
       [](W w, Rank& r) -> C { return Cau(w, r, Operation::kReduce); },
       Fits::kOneTaskPerNode,
       true},
      {{Operation::kBroadcast, "cau", "multicast by a tree of CAUs"},
       [](W w, Rank& r) -> C { return Cau(w, r, Operation::kBroadcast); },
       Fits::kOneTaskPerNode,
       true},
      {{Operation::kAllreduce, "cau", "reduce, then multicast, by a tree of CAUs"},
       [](W w, Rank& r) -> C { return MakeCauAllreduce(r, All(w)); },
       Fits::kOneTaskPerNode,
       true},
      {{Operation::kBarrier, "cau", "reduce of nothing, then multicast, by a tree of CAUs"},
       [](W w, Rank& r) -> C { return MakeCauBarrier(r, All(w)); },
       Fits::kOneTaskPerNode,
       true},
  };
}

const std::vector<Named>& Others() {
  static const std::vector<Named> kOthers = [] {
    std::vector<Named> all = OnOneNode();
    for (Named& named : AcrossNodes()) all.push_back(std::move(named));
    return all;
  }();
  return kOthers;
}

std::vector<CollectiveName> MakeCollectiveNames() {
  std::vector<CollectiveName> names;
  for (const P2pAlgorithm& algorithm : P2pAlgorithms()) {
    names.push_back(
        {algorithm.operation, fmt::format("p2p:{}", algorithm.name), "active messages"});
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

// Without its layer.
std::string AlgorithmOf(const CollectiveName& name) {
  return name.name.substr(name.name.find(':') + 1);
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

absl::Status CheckFits(const CollectiveName& name, Fits fits, const CollectiveWorkload& workload) {
  const TaskPlacement& placement = workload.placement;
  if (fits == Fits::kOneNode && placement.nodes > 1) {
    return absl::InvalidArgumentError(
        fmt::format("{} {} is for tasks of one node, but these tasks are on {} nodes", name.name,
                    OperationName(name.operation), placement.nodes));
  }
  if (name.name == "smartmap:parallel" && IsOfPairs(workload.op)) {
    return absl::InvalidArgumentError(
        fmt::format("{} {} with {}: a task that computes a part does not have the values, so their "
                    "locations would be wrong; use smartmap:serial",
                    name.name, OperationName(name.operation), OpName(workload.op)));
  }
  if (fits == Fits::kOneTaskPerNode && placement.tasks_per_node > 1) {
    return absl::InvalidArgumentError(
        fmt::format("{} {} is for one task per node, but there are {}; a tree of CAUs has one "
                    "participant per node, so use hybrid:cau",
                    name.name, OperationName(name.operation), placement.tasks_per_node));
  }
  return absl::OkStatus();
}

// What a tree of CAUs cannot carry or combine.
absl::Status CheckForCau(const CollectiveName& name, const CollectiveWorkload& workload) {
  if (name.operation == Operation::kBarrier) return absl::OkStatus();
  if (workload.bytes > kCauPayloadMax) {
    return absl::InvalidArgumentError(fmt::format(
        "{} {} of {} bytes: a CAU packet has at most {}; use messages (hybrid:p2p, p2p) for more",
        name.name, OperationName(name.operation), workload.bytes, kCauPayloadMax));
  }
  if (name.operation == Operation::kBroadcast) return absl::OkStatus();
  return CheckCauReduction(workload.op, workload.type, static_cast<int>(workload.bytes));
}

}  // namespace

const std::vector<CollectiveName>& CollectiveNames() {
  static const std::vector<CollectiveName> kNames = MakeCollectiveNames();
  return kNames;
}

absl::Status CheckCollectiveName(const CollectiveWorkload& workload) {
  if (const CollectiveName* name = Find(workload.operation, workload.algorithm)) {
    const Named* other = FindOther(*name);
    if (!other) return absl::OkStatus();
    if (auto status = CheckFits(*name, other->fits, workload); !status.ok()) return status;
    return other->uses_tree ? CheckForCau(*name, workload) : absl::OkStatus();
  }
  std::string all;
  for (const CollectiveName& name : CollectiveNames()) {
    if (name.operation == workload.operation) all += (all.empty() ? "" : ", ") + name.name;
  }
  return absl::InvalidArgumentError(fmt::format("unknown {} algorithm '{}'; algorithms: {}",
                                                OperationName(workload.operation),
                                                workload.algorithm, all));
}

absl::Status CheckCollectiveSize(const CollectiveWorkload& workload, int windows) {
  const TaskPlacement& placement = workload.placement;
  if (placement.tasks_per_node > static_cast<std::uint32_t>(windows)) {
    return absl::InvalidArgumentError(fmt::format(
        "{} tasks per node, each with a window of its own; a hub has 2 x windows_per_hfi = {}",
        placement.tasks_per_node, windows));
  }
  const CollectiveName* name = Find(workload.operation, workload.algorithm);
  if (!name || FindOther(*name) || placement.tasks() <= kPhases) return absl::OkStatus();
  PhaseSchedule schedule{.size = placement.tasks(), .bytes = workload.bytes};
  FindP2pAlgorithm(workload.operation, AlgorithmOf(*name))->plan(schedule);
  if (schedule.phases.size() <= kPhases) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "{} {} of {} tasks takes {} messages of each task, one after the other; {} can be "
      "distinguished, so take fewer tasks, or another algorithm",
      name->name, OperationName(name->operation), placement.tasks(), schedule.phases.size(),
      kPhases));
}

bool UsesCauTree(const CollectiveWorkload& workload) {
  const CollectiveName* name = Find(workload.operation, workload.algorithm);
  const Named* other = name ? FindOther(*name) : nullptr;
  return other && other->uses_tree && workload.placement.nodes > 1;
}

std::unique_ptr<Collective> MakeCollective(const CollectiveWorkload& workload, Rank& rank) {
  const CollectiveName& name = *Find(workload.operation, workload.algorithm);
  if (const Named* other = FindOther(name)) return other->make(workload, rank);
  return std::make_unique<P2pCollective>(
      rank, All(workload), *FindP2pAlgorithm(workload.operation, AlgorithmOf(name)), kMainChannel);
}

}  // namespace percs
