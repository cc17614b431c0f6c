// Collectives chained by their completion callbacks (paper 003 section 4): levels, of which each
// task walks some in ascending order. A level is another collective on some of the tasks; the last
// one that a task walks calls the user's callback. Times are kept per level.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "emulator/collectives/collective.h"
#include "emulator/scenario/loop_workload.h"

namespace percs {

struct ChainLevel {
  std::string name;
  std::unique_ptr<Collective> collective;  // null: this task is never in the level
  // Makes the call of the level out of the user's (a copy of it). False: the task skips it this
  // time.
  std::function<bool(CollectiveCall& call)> prepare;
};

// The tasks on this one's node.
TaskGroup LocalGroup(Rank& rank);

class Chain final : public Collective {
 public:
  Chain(Rank& rank, std::vector<ChainLevel> levels);

  void Reset(const CollectiveCall& call) override;
  void Start() override;
  std::string Waits() const override;
  void AddTimes(CollectiveResult* result) const override;

 private:
  void Continue();
  static void LevelDone(void* chain);

  Rank& rank_;
  std::vector<ChainLevel> levels_;
  std::vector<LevelTime> times_;
  CollectiveCall user_;
  std::size_t at_ = 0;
  Time entered_ = 0;
};

// On all tasks of `placement`: a level on the root's node, one over the leaders (task 0 of each
// node), one on the other nodes.
enum class LeaderLayer : std::uint8_t { kP2p, kCau };
std::unique_ptr<Collective> MakeHybridBarrier(Rank& rank, LeaderLayer leaders);
std::unique_ptr<Collective> MakeHybridAllreduce(Rank& rank, LeaderLayer leaders,
                                                std::uint64_t bytes);
std::unique_ptr<Collective> MakeHybridBroadcast(Rank& rank, LeaderLayer leaders,
                                                std::uint64_t bytes);
// Over nodes: on each of them by direct access or by messages, between them by messages of their
// leaders.
enum class NodeLayer : std::uint8_t { kSmartmap, kP2p };
std::unique_ptr<Collective> MakeHierarchicalReduce(Rank& rank, NodeLayer layer);
std::unique_ptr<Collective> MakeHierarchicalBroadcast(Rank& rank, NodeLayer layer);
std::unique_ptr<Collective> MakeHierarchicalAllreduce(Rank& rank, NodeLayer layer);
// Reduce, then broadcast, on a tree of CAUs, one task per node; a barrier has no data and operation
// NOP.
std::unique_ptr<Collective> MakeCauAllreduce(Rank& rank, const TaskGroup& leaders);
std::unique_ptr<Collective> MakeCauBarrier(Rank& rank, const TaskGroup& leaders);
// Reduce, then broadcast, through the memory of one node; without data it is a barrier.
std::unique_ptr<Collective> MakeShmAllreduce(Rank& rank, const TaskGroup& group);
// The same by direct access to each other's memory.
std::unique_ptr<Collective> MakeSmartmapAllreduce(Rank& rank, const TaskGroup& group);

}  // namespace percs
