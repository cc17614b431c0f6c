// What one task does in a collective made of messages: phases of at most one message out and one
// in, worked out by reset(). Algorithms are functions that fill in a schedule; the state machine
// that runs it is P2pCollective.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "emulator/scenario/operation.h"

namespace percs {

enum class Buffer : std::uint8_t { kInput, kOutput, kScratch };

// `bytes` in runs of `run` bytes, `stride` apart; run 0: in one piece.
struct Piece {
  Buffer buffer = Buffer::kScratch;
  std::uint64_t offset = 0, bytes = 0;
  std::uint64_t run = 0, stride = 0;
};

struct Phase {
  static constexpr std::int32_t kNobody = -1;
  enum class Take : std::uint8_t {
    kCopy,
    kCombine,
    kCombineWithInput,  // of the same place, so that nothing has to be copied there before
  };
  std::int32_t to = kNobody, from = kNobody;  // index in the group
  Piece send, receive;
  Take take = Take::kCopy;
  bool posted_early = false;  // its receive: with the phase before it, so that a rendezvous begins
};

// Moved within a task's own memory, before the first phase or after the last.
struct LocalCopy {
  Piece from, into;
};

struct PhaseSchedule {
  // Given:
  std::uint32_t size = 1, me = 0, root = 0;
  std::uint64_t bytes = 0;
  // To be filled in:
  std::vector<Phase> phases = {};
  std::vector<LocalCopy> before = {}, after = {};
  std::uint64_t scratch = 0;
  bool at_once = false;  // no phase waits for the one before

  bool at_root() const { return me == root; }
  std::uint32_t relative() const { return (me + size - root) % size; }
  std::int32_t Absolute(std::uint32_t relative) const {
    return static_cast<std::int32_t>((relative + root) % size);
  }
  void Clear() {
    phases.clear();
    before.clear();
    after.clear();
    scratch = 0;
    at_once = false;
  }
};

struct P2pAlgorithm {
  Operation operation;
  std::string_view name;
  void (*plan)(PhaseSchedule& schedule);
};

// The first of an operation is its default.
const std::vector<P2pAlgorithm>& P2pAlgorithms();
// Null: there is none. Empty name: the default.
const P2pAlgorithm* FindP2pAlgorithm(Operation operation, std::string_view name);

// ceil(log2 n) and the largest power of two up to n.
int CeilLog2(std::uint32_t n);
std::uint32_t PowerOfTwoUpTo(std::uint32_t n);

}  // namespace percs
