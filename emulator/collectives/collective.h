// The interface of every collective (paper 003 sections 3.1 and 3.3): reset() is local, start()
// returns at once, and a callback tells of local completion; the callback may reset and start
// others, which is how collectives are chained.
#pragma once

#include <cstdint>
#include <string>

#include "emulator/base/reduce_op.h"
#include "emulator/runtime/rank.h"

namespace percs {

struct CollectiveResult;

// The tasks of a collective: first, first + stride, ... A member's number in it is its index.
struct TaskGroup {
  std::uint32_t first = 0, stride = 1, size = 1;
  std::uint32_t task(std::uint32_t index) const { return first + index * stride; }
  std::uint32_t IndexOf(std::uint32_t task) const { return (task - first) / stride; }
  bool Has(std::uint32_t task) const {
    return task >= first && (task - first) % stride == 0 && IndexOf(task) < size;
  }
};

// One operation. `bytes` is what each task has (gather, scatter, all-to-all: of each block). Null
// buffers: lengths only; times are the same.
struct CollectiveCall {
  std::uint32_t root = 0;  // index in the group
  std::uint64_t bytes = 0;
  ReduceOp op = ReduceOp::kSum;
  OperandType type = OperandType::kInt64;
  const std::uint8_t* input = nullptr;
  std::uint8_t* output = nullptr;  // broadcast: the one buffer, full at the root
  void (*done)(void* client) = nullptr;
  void* client = nullptr;
};

class Collective {
 public:
  virtual ~Collective() = default;
  virtual void Reset(const CollectiveCall& call) = 0;
  virtual void Start() = 0;
  // What it waits for, for the report of a deadlock; empty if it does not run.
  virtual std::string Waits() const = 0;
  // Adds the time spent in each level, if it has any.
  virtual void AddTimes(CollectiveResult* result) const {}
};

}  // namespace percs
