// The caches and the memory of a node as one server that copies of all its threads share (processor
// sharing): as long as they ask for less than it can do, each takes the time that it takes alone;
// beyond that all are slower by the same factor. Threads of a core read a shared buffer through one
// L2 cache, so that what one of them has fetched the others find there: the caller counts it once.
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/base/time.h"

namespace percs {

class NodeRuntime;
class Rank;

class MemoryServer {
 public:
  explicit MemoryServer(NodeRuntime& node) : node_(node) {}

  // `rank` begins what takes `cost` alone and moves `bytes`; Rank::OnTimer is called at its end.
  // REQUIRES: cost > 0.
  void Begin(Rank& rank, Time cost, std::uint64_t bytes);
  void OnTimer();

 private:
  // A copy of 256 MiB may ask for 10^11 times what there is, and all tasks of a node for as much.
  using Wide = __int128;
  struct Job {
    Rank* rank = nullptr;
    Time finish = 0;  // of served_
    Wide share = 0;   // of the server, alone; kWhole: all of it
  };
  static constexpr std::int64_t kWhole = 1 << 20;

  Wide Slowdown() const { return asked_ > kWhole ? asked_ : kWhole; }
  void Serve();
  void Arm();

  NodeRuntime& node_;
  std::vector<Job> jobs_;  // in the order of their beginnings
  Wide asked_ = 0;         // sum of their shares
  Time served_ = 0;        // time that a job would have spent alone since the run began
  Time at_ = 0;            // of served_
  Time armed_ = kNever;    // earliest timer under way
};

}  // namespace percs
