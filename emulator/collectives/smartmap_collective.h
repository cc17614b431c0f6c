// Collectives of processes that can read and write each other's memory (SMARTMAP, paper 002 section
// IV): data is moved once, from one process's buffer to another's, and a few counters in a
// structure that every process has at the same address keep the order.
//
// Not modelled: communicators that overlap, which is what the paper's `context` is for.
#pragma once

#include <string>
#include <vector>

#include "emulator/collectives/collective.h"
#include "emulator/runtime/node_runtime.h"
#include "emulator/scenario/operation.h"

namespace percs {

// From this size in bytes on, a reduce is shared among all processes (paper 002 section V-B).
inline constexpr std::uint64_t kParallelReduceFrom = 1024;

enum class SmartmapReduce : std::uint8_t { kAuto, kSerial, kParallel };

// Broadcast, reduce and all-to-all among the tasks of one node.
class SmartmapCollective final : public Collective, private Work {
 public:
  SmartmapCollective(Rank& rank, const TaskGroup& group, Operation operation, std::uint8_t channel,
                     SmartmapReduce reduce = SmartmapReduce::kAuto);

  void Reset(const CollectiveCall& call) override;
  void Start() override;
  std::string Waits() const override;

 private:
  enum class Kind : std::uint8_t { kBroadcast, kSerialReduce, kParallelReduce, kAlltoall };
  using Info = SmartmapArea::Info;

  bool Check(Rank& rank, Time* ready_at) override;
  void Run(Rank& rank) override;
  void Begin(std::uint64_t) { rank_.Post(this); }

  bool CheckBroadcast(Time* ready_at);
  bool CheckSerial(Time* ready_at);
  bool CheckParallel(Time* ready_at);
  bool CheckAlltoall(Time* ready_at);
  void RunBroadcast();
  void RunSerial();
  void RunParallel();
  void RunAlltoall();
  void Publish();
  void CombineFrom(std::uint32_t from, std::uint64_t offset, std::uint64_t bytes, bool first);
  // The part of a parallel reduce that this task works out.
  std::uint64_t ChunkFrom(std::uint32_t index) const;

  bool at_root() const { return me_ == call_.root; }
  Info& info(std::uint32_t index) { return area_.infos[index]; }
  Info& root() { return info(call_.root); }
  bool AtLeast(SharedLine& line, std::uint64_t wanted, Time* ready_at);
  void Spend(std::uint64_t bytes, Time* ready_at) const;

  Rank& rank_;
  const std::uint32_t size_, me_;
  const Operation operation_;
  const SmartmapReduce reduce_;
  SmartmapArea& area_;
  CollectiveCall call_;
  Kind kind_ = Kind::kBroadcast;
  int step_ = 0, steps_ = 0;
  bool running_ = false;
  std::uint32_t seen_ = 0;
  // What the counters of every task were before this operation; all tasks make the same calls.
  struct Base {
    std::uint64_t entered = 0, turn = 0, finished = 0;
  };
  std::vector<Base> base_;
};

}  // namespace percs
