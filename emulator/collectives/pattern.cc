#include "emulator/collectives/pattern.h"

#include <cstring>

#include "emulator/base/random.h"

namespace percs {
namespace {

template <typename T>
void Store(T value, std::uint8_t* into) {
  std::memcpy(into, &value, sizeof(T));
}

void StoreAs(OperandType type, std::uint64_t value, std::uint8_t* into) {
  switch (type) {
    case OperandType::kInt32:
    case OperandType::kUint32:
      return Store(static_cast<std::uint32_t>(value), into);
    case OperandType::kInt64:
    case OperandType::kUint64:
      return Store(value, into);
    case OperandType::kFloat:
      return Store(static_cast<float>(value), into);
    case OperandType::kDouble:
      return Store(static_cast<double>(value), into);
  }
}

// Small enough that sums over 4,096 tasks are exact in a float.
std::uint64_t Base(std::uint64_t call, std::uint64_t index) { return (7 * call + index) % 997; }

// Block that `task` has for `peer` (0 where all get the same).
std::uint8_t Byte(std::uint64_t call, std::uint32_t task, std::uint32_t peer, std::uint64_t i) {
  const std::uint64_t seed = Mix64(call << 32 ^ static_cast<std::uint64_t>(task) << 16 ^ peer);
  return static_cast<std::uint8_t>(Mix64(seed + i / 8) >> 8 * (i % 8));
}

void FillBlock(std::uint64_t call, std::uint32_t task, std::uint32_t peer, std::uint64_t bytes,
               std::uint8_t* into) {
  for (std::uint64_t i = 0; i < bytes; ++i) into[i] = Byte(call, task, peer, i);
}

bool CheckBlock(std::uint64_t call, std::uint32_t task, std::uint32_t peer, std::uint64_t bytes,
                const std::uint8_t* block) {
  for (std::uint64_t i = 0; i < bytes; ++i) {
    if (block[i] != Byte(call, task, peer, i)) return false;
  }
  return true;
}

}  // namespace

std::uint64_t CollectivePattern::InputBytes() const {
  if (operation_ == Operation::kBarrier || operation_ == Operation::kBroadcast) return 0;
  const bool blocks = operation_ == Operation::kScatter || operation_ == Operation::kAlltoall;
  return blocks ? tasks_ * bytes_ : bytes_;
}

std::uint64_t CollectivePattern::OutputBytes() const {
  if (operation_ == Operation::kBarrier) return 0;
  const bool blocks = operation_ == Operation::kGather || operation_ == Operation::kAllgather ||
                      operation_ == Operation::kAlltoall;
  return blocks ? tasks_ * bytes_ : bytes_;
}

void CollectivePattern::Operand(std::uint64_t call, std::uint32_t task, std::uint64_t index,
                                std::uint8_t* into) const {
  switch (op_) {
    case ReduceOp::kProd:  // one factor of 3 among ones
      return StoreAs(type_, task == (call + index) % tasks_ ? 3 : 1, into);
    case ReduceOp::kMaxLoc:
    case ReduceOp::kMinLoc:  // few values, so that several tasks have the extreme
      return StoreAs(type_, index % 2 ? task : Mix64(call << 32 ^ index << 16 ^ task) % 5, into);
    case ReduceOp::kAnd:
      return StoreAs(type_, 0x7fffffff ^ (1u << (task + call + index) % 31), into);
    case ReduceOp::kOr:
    case ReduceOp::kXor:
      return StoreAs(type_, 1u << (task + call + index) % 31, into);
    default:
      return StoreAs(type_, Base(call, index) + task, into);
  }
}

void CollectivePattern::Expected(std::uint64_t call, std::uint32_t tasks, std::uint64_t index,
                                 std::uint8_t* into) const {
  const std::uint64_t base = Base(call, index), n = tasks;
  switch (op_) {
    case ReduceOp::kSum:
      return StoreAs(type_, n * base + n * (n - 1) / 2, into);
    case ReduceOp::kMin:
      return StoreAs(type_, base, into);
    case ReduceOp::kMax:
      return StoreAs(type_, base + n - 1, into);
    default:
      break;
  }
  if (IsOfPairs(op_)) return ExpectedOfPair(call, tasks, index, into);
  Operand(call, 0, index, into);
  std::uint8_t next[8];
  for (std::uint32_t task = 1; task < tasks; ++task) {
    Operand(call, task, index, next);
    Combine(op_, type_, 1, next, into);
  }
}

void CollectivePattern::ExpectedOfPair(std::uint64_t call, std::uint32_t tasks, std::uint64_t index,
                                       std::uint8_t* into) const {
  const std::size_t width = OperandBytes(type_);
  std::uint8_t best[16], next[16];
  for (std::uint32_t task = 0; task < tasks; ++task) {
    std::uint8_t* pair = task == 0 ? best : next;
    Operand(call, task, index & ~std::uint64_t{1}, pair);
    Operand(call, task, index | 1, pair + width);
    if (task > 0) Combine(op_, type_, 2, next, best);
  }
  std::memcpy(into, best + index % 2 * width, width);
}

bool CollectivePattern::CheckReduced(std::uint64_t call, std::uint32_t tasks,
                                     const std::uint8_t* output) const {
  const std::uint64_t width = OperandBytes(type_);
  std::uint8_t expected[8];
  for (std::uint64_t i = 0; i < bytes_ / width; ++i) {
    Expected(call, tasks, i, expected);
    if (std::memcmp(expected, output + i * width, width) != 0) return false;
  }
  return true;
}

void CollectivePattern::Fill(std::uint64_t call, std::uint32_t task, std::uint32_t root,
                             std::uint8_t* input, std::uint8_t* output) const {
  if (output) std::memset(output, 0xee, OutputBytes());
  if (reduces()) {
    const std::uint64_t width = OperandBytes(type_);
    for (std::uint64_t i = 0; i < bytes_ / width; ++i) Operand(call, task, i, input + i * width);
  } else if (operation_ == Operation::kBroadcast) {
    if (task == root) FillBlock(call, root, 0, bytes_, output);
  } else if (operation_ == Operation::kScatter) {
    if (task != root) return;
    for (std::uint32_t peer = 0; peer < tasks_; ++peer) {
      FillBlock(call, root, peer, bytes_, input + peer * bytes_);
    }
  } else if (operation_ == Operation::kAlltoall) {
    for (std::uint32_t peer = 0; peer < tasks_; ++peer) {
      FillBlock(call, task, peer, bytes_, input + peer * bytes_);
    }
  } else if (operation_ != Operation::kBarrier) {
    FillBlock(call, task, 0, bytes_, input);
  }
}

bool CollectivePattern::Check(std::uint64_t call, std::uint32_t task, std::uint32_t root,
                              const std::uint8_t* output) const {
  switch (operation_) {
    case Operation::kBarrier:
      return true;
    case Operation::kReduce:
      return task != root || CheckReduced(call, tasks_, output);
    case Operation::kAllreduce:
      return CheckReduced(call, tasks_, output);
    case Operation::kScan:
      return CheckReduced(call, task + 1, output);
    case Operation::kBroadcast:
      return CheckBlock(call, root, 0, bytes_, output);
    case Operation::kScatter:
      return CheckBlock(call, root, task, bytes_, output);
    case Operation::kGather:
      if (task != root) return true;
      break;
    default:
      break;
  }
  for (std::uint32_t peer = 0; peer < tasks_; ++peer) {
    const std::uint32_t for_task = operation_ == Operation::kAlltoall ? task : 0;
    if (!CheckBlock(call, peer, for_task, bytes_, output + peer * bytes_)) return false;
  }
  return true;
}

}  // namespace percs
