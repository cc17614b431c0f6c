#include "emulator/cau/cau_reduction.h"

#include "emulator/cau/cau_port.h"
#include "fmt/format.h"

namespace percs {

absl::Status CheckCauReduction(ReduceOp op, OperandType type, int bytes) {
  const bool floating = type == OperandType::kFloat || type == OperandType::kDouble;
  const bool everywhere = op == ReduceOp::kSum || op == ReduceOp::kMin || op == ReduceOp::kMax;
  if (IsOfPairs(op) || (!everywhere && floating != (op == ReduceOp::kProd))) {
    return absl::InvalidArgumentError(fmt::format(
        "a CAU does not support {} of {} operands; it supports {}", OpName(op), TypeName(type),
        floating ? "min, max, sum and prod of float and double"
                 : "nop, sum, min, max, or, and, xor of int32, uint32, int64 and uint64"));
  }
  const int operand = static_cast<int>(OperandBytes(type));
  if (bytes > kCauPayloadMax || bytes % operand != 0) {
    return absl::InvalidArgumentError(fmt::format(
        "{} bytes cannot be reduced as {}: a CAU packet has at most {} bytes, in operands of {}",
        bytes, TypeName(type), kCauPayloadMax, operand));
  }
  return absl::OkStatus();
}

}  // namespace percs
