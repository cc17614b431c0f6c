// What the ALU of a CAU can compute: fixed point NOP, SUM, MIN, MAX, OR, AND and XOR, floating
// point MIN, MAX, SUM and PROD (paper 000 section IV-D). Paper 003 section 3.6 lists one set of
// operations for all types and no PROD; where the two differ, the hardware's own paper holds.
#pragma once

#include "absl/status/status.h"
#include "emulator/base/reduce_op.h"

namespace percs {

// INVALID_ARGUMENT for a pair of operation and type that the ALU does not have, with what it has;
// for more than 64 bytes, and for a part of an operand.
absl::Status CheckCauReduction(ReduceOp op, OperandType type, int bytes);

}  // namespace percs
