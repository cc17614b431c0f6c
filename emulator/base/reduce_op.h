// Reductions of operands of one type: what the CAU, shared-memory and message collectives all
// compute, so that their results compare bit by bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/status.h"

namespace percs {

// The last two combine pairs of operands, a value and where it is: the pair with the largest
// (smallest) value, and of equal ones that with the lowest place. Software only: a CAU has none.
enum class ReduceOp : std::uint8_t {
  kNop,
  kSum,
  kProd,
  kMin,
  kMax,
  kAnd,
  kOr,
  kXor,
  kMaxLoc,
  kMinLoc
};
enum class OperandType : std::uint8_t { kInt32, kUint32, kInt64, kUint64, kFloat, kDouble };
inline constexpr int kReduceOps = 8,
                     kOperandTypes = 6;  // without pairs: what CAU packets can ask for
inline constexpr int kSoftwareReduceOps = 10;
constexpr bool IsOfPairs(ReduceOp op) { return op >= ReduceOp::kMaxLoc; }

constexpr std::size_t OperandBytes(OperandType type) {
  return type == OperandType::kInt32 || type == OperandType::kUint32 || type == OperandType::kFloat
             ? 4
             : 8;
}
// Bytes that are combined as one.
constexpr std::size_t ElementBytes(ReduceOp op, OperandType type) {
  return OperandBytes(type) * (IsOfPairs(op) ? 2 : 1);
}
// `sum`, `min` ...; `int32`, `uint64`, `float`, `double` ...
std::string_view OpName(ReduceOp op);
std::string_view TypeName(OperandType type);
std::optional<ReduceOp> ParseOp(std::string_view name);
std::optional<OperandType> ParseType(std::string_view name);

// INVALID_ARGUMENT for AND, OR and XOR of floating-point operands: they have no such meaning.
absl::Status CheckReduction(ReduceOp op, OperandType type);

// into[i] = into[i] op from[i], in this order of operands; fixed-point sums and products wrap
// around, kNop leaves `into`. Bytes need no alignment. REQUIRES: CheckReduction is OK, pairs are
// whole.
void Combine(ReduceOp op, OperandType type, std::size_t count, const void* from, void* into);

}  // namespace percs
