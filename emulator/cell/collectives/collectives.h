// Collectives among the SPEs of a blade as paper 001 section 3 has them: one signal register in OR
// mode, in which SPE i is bit i of a half, the halves taking turns between calls; one buffer of 16
// KiB at the same place of every local store; one group of all SPEs; phases ready, transfer, go.
//
//   Task<> Program(Spe& spe) {
//     Collectives group(spe, *CollectiveGroup::Create(16));
//     co_await group.Barrier();
//     co_await group.Broadcast(4096);       // of the buffer, from SPE 0
//     co_await group.Reduce(vector, 32, ReduceOp::kAdd, ReduceType::kFloat);
//   }
//
// Every SPE of the group makes the same calls in the same order.
#pragma once

#include <array>
#include <cstdint>

#include "absl/status/statusor.h"
#include "emulator/cell/collectives/algorithm.h"
#include "emulator/cell/spe.h"

namespace percs::cell {

enum class ReduceOp : std::uint8_t { kAdd, kMin, kMax };
enum class ReduceType : std::uint8_t { kInt, kFloat };

inline constexpr std::uint32_t kCollectiveBufferBytes = kDmaBytesMax;
inline constexpr std::uint32_t kAllToOneElementsMax = 512;  // eight senders fill the buffer
inline constexpr std::uint32_t kTreeElementsMax = 2048;

class CollectiveGroup {
 public:
  // SPEs 0 to spes - 1. INVALID_ARGUMENT for a count or a place that cannot be.
  static absl::StatusOr<CollectiveGroup> Create(int spes, LsAddress buffer = 0x10000,
                                                int signal_register = 1);
  int spes() const { return spes_; }
  LsAddress buffer() const { return buffer_; }
  int signal_register() const { return signal_register_; }

 private:
  int spes_ = 0;
  LsAddress buffer_ = 0;
  int signal_register_ = 1;
};

// One SPE's part in the group; lives as long as its program.
class Collectives {
 public:
  Collectives(Spe& spe, const CollectiveGroup& group);

  FramePool& frames() { return spe_.frames(); }
  LsAddress buffer() const { return group_.buffer(); }

  // No SPE leaves before all have entered.
  Task<> Barrier(AlgorithmSpec spec = {});
  // The first `bytes` of SPE 0's buffer reach all buffers.
  Task<> Broadcast(std::uint32_t bytes, AlgorithmSpec spec = {});
  // Combines the `elements` of all at `vector` (the same place in every local store, a multiple of
  // 16) into SPE 0's; the vectors of others may hold parts of the result afterwards.
  Task<> Reduce(LsAddress vector, std::uint32_t elements, ReduceOp op, ReduceType type,
                AlgorithmSpec spec = {});

 private:
  static constexpr int kSignalTag = 31;
  // Ranks of children in the order in which they became ready.
  struct ReadyList {
    int count = 0;
    std::array<std::uint8_t, kSpes> child{};
    void Add(std::uint32_t bits);
    void PutFirst(int rank);
  };
  struct Vector {
    LsAddress at = 0;
    std::uint32_t elements = 0;
    std::uint32_t dma_bytes = 0, slot_bytes = 0;
    int slots = 0;  // of the buffer
    ReduceOp op = ReduceOp::kAdd;
    ReduceType type = ReduceType::kInt;
  };

  // Of a call: who this SPE speaks to, and which half of the register it uses.
  void Begin(const AlgorithmSpec& spec, bool linked);
  std::uint32_t Bit(int rank) const { return 1u << (rank + shift_); }
  std::uint32_t ChildBits() const;
  // The partner's bit of the current half, once per call and direction.
  Task<> Signal(int partner);
  Task<> WaitForAll(std::uint32_t bits);
  Task<std::uint32_t> WaitForAny(std::uint32_t bits);

  // What the DMA rules allow for this number of bytes: at most 15 more.
  static std::uint32_t DmaBytes(std::uint32_t bytes) {
    const bool small = bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
    return small ? bytes : (bytes + 15) / 16 * 16;
  }
  // Before a call over another tree than that of the broadcast or reduction before it.
  Task<> Settle(AlgorithmSpec next);
  Task<> TreeBarrier();
  Task<> PairwiseBarrier();
  Task<> MoveToChild(int child, std::uint32_t bytes, int tag);
  Task<> PhasedBroadcast(std::uint32_t bytes);
  Task<> OverlappedBroadcast(std::uint32_t bytes);

  Task<> PhasedReduce(Vector v);
  Task<> OverlappedReduce(Vector v);
  Task<> FetchFromChild(int child, Vector v, int slot);
  Task<> Combine(Vector v, int slot);

  Spe& spe_;
  const CollectiveGroup group_;
  std::uint32_t pending_ = 0;  // read from the register and not yet used
  int shift_ = 0;
  AlgorithmSpec last_;
  bool last_linked_ = false;
  bool last_rooted_ = false;  // the last call was a broadcast or a reduction
  TreePlace place_;
};

}  // namespace percs::cell
