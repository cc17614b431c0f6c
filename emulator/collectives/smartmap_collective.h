// Collectives of processes that can read and write each other's memory (SMARTMAP, paper 002 section
// IV): data is moved once, from one process's buffer to another's, and a few counters in a
// structure that every process has at the same address keep the order.
//
// Not modelled: communicators that overlap, which is what the paper's `context` is for.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "emulator/collectives/collective.h"
#include "emulator/runtime/core_caches.h"
#include "emulator/runtime/node_runtime.h"
#include "emulator/scenario/operation.h"

namespace percs {

// From this size in bytes on, a reduce is shared among all processes (paper 002 section V-B).
inline constexpr std::uint64_t kParallelReduceFrom = 1024;

enum class SmartmapReduce : std::uint8_t { kAuto, kSerial, kParallel };
// What a broadcast sends: a buffer that is not written, as benchmarks do, or what the root, or
// its node, has just received or reduced.
enum class SmartmapSource : std::uint8_t { kKept, kReceived };

// Broadcast, reduce and all-to-all among the tasks of one node.
class SmartmapCollective final : public Collective, private Work {
 public:
  SmartmapCollective(Rank& rank, const TaskGroup& group, Operation operation, std::uint8_t channel,
                     SmartmapReduce reduce = SmartmapReduce::kAuto,
                     SmartmapSource source = SmartmapSource::kKept);

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
  enum class Pass : std::uint8_t { kCopy, kCombine };
  // Copies or combines part `number` of a buffer into one of another; its time.
  Time PassPart(Pass pass, std::uint32_t from, CoreCaches::Role role, std::uint32_t from_number,
                std::uint32_t to, std::uint32_t to_number, std::uint64_t bytes);
  // The same of a whole buffer, whose parts are those of a parallel reduce.
  Time PassAll(Pass pass, std::uint32_t from, CoreCaches::Role role, std::uint32_t to);
  // Part `me_` of every task's buffer into `to`'s: combined in one place, or each into its own
  // (all-to-all).
  Time PassOfEach(std::uint64_t bytes, std::uint32_t to);
  bool caches_kept() const { return rank_.node().host().own_cache > 0; }
  // Atomic increments of counters that others increment, too (paper 002 section IV), one after the
  // other.
  Time ClaimFinishedOfAll();
  static void Spend(Rank& rank, Time time, Time* ready_at) {
    *ready_at = std::max(*ready_at, rank.now()) + time;
  }

  Rank& rank_;
  const std::uint32_t size_, me_;
  const Operation operation_;
  const SmartmapReduce reduce_;
  const SmartmapSource source_;
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
