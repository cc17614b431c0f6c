// The benchmark loop of paper 003 as a workload: tasks call one collective again and again, each as
// soon as the last call has completed locally.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "emulator/base/digest.h"
#include "emulator/base/reduce_op.h"
#include "emulator/base/time.h"
#include "emulator/scenario/operation.h"
#include "emulator/scenario/placement.h"

namespace percs {

struct CollectiveWorkload {
  Operation operation = Operation::kAllreduce;
  std::string algorithm;  // layer, or layer:algorithm; empty: p2p
  TaskPlacement placement;
  std::uint64_t bytes = 8;
  ReduceOp op = ReduceOp::kSum;
  OperandType type = OperandType::kInt64;
  std::uint32_t root = 0;
  bool rotate_root = false;  // root of call k: (root + k) mod tasks
  std::uint64_t warm_up = 10, iterations = 1000;
  // Of the CAU algorithms: a tree of the scenario whose participants are the nodes. A scenario
  // without trees gets one.
  std::uint16_t cau_tree = 0;
  bool verified = true;  // real bytes, all results checked; else lengths only
  HostParameters host;
};

// Time that the tasks of a level spent in it, of a collective that is chained from levels.
struct LevelTime {
  std::string level;
  Time total = 0;
  std::uint64_t calls = 0;
};

// Of the tasks of one node, or of all.
struct CollectiveResult {
  std::uint64_t tasks = 0, iterations = 0;
  Time total = 0;                      // over tasks: of the measured calls
  Time fastest = kNever, slowest = 0;  // task
  std::uint64_t wrong = 0;             // results that were not the expected ones
  std::vector<LevelTime> levels;

  bool empty() const { return tasks == 0; }
  void Merge(const CollectiveResult& other);
  void Fold(DigestStream& digest) const;
  // Mean time of a call.
  double Nanoseconds() const;
};

// INVALID_ARGUMENT for what cannot be run on `hubs` hubs, with what would be right.
absl::Status CheckCollectiveWorkload(const CollectiveWorkload& workload, std::uint32_t hubs);
// INVALID_ARGUMENT if a hub with so many windows has fewer than tasks, or the algorithm takes more
// messages of one task, one after the other, than can be told apart.
absl::Status CheckCollectiveSize(const CollectiveWorkload& workload, int windows);
// True if its algorithm is one on a tree of CAUs; false also if there is no such algorithm.
bool UsesCauTree(const CollectiveWorkload& workload);

}  // namespace percs
