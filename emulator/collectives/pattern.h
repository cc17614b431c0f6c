// Inputs of the benchmark loop, and what their result has to be; every call has others, so that a
// result of an earlier one is noticed. Sums and extremes are checked by formula, the rest by
// working it out.
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/scenario/loop_workload.h"

namespace percs {

class CollectivePattern {
 public:
  CollectivePattern(Operation operation, ReduceOp op, OperandType type, std::uint32_t tasks,
                    std::uint64_t bytes)
      : operation_(operation), op_(op), type_(type), tasks_(tasks), bytes_(bytes) {}

  // What the buffers of a task hold.
  std::uint64_t InputBytes() const;
  std::uint64_t OutputBytes() const;

  void Fill(std::uint64_t call, std::uint32_t task, std::uint32_t root, std::uint8_t* input,
            std::uint8_t* output) const;
  // True if the output of `task` is right; also where the operation gives it none.
  bool Check(std::uint64_t call, std::uint32_t task, std::uint32_t root,
             const std::uint8_t* output) const;

 private:
  bool reduces() const {
    return operation_ == Operation::kReduce || operation_ == Operation::kAllreduce ||
           operation_ == Operation::kScan;
  }
  void Operand(std::uint64_t call, std::uint32_t task, std::uint64_t index,
               std::uint8_t* into) const;
  void Expected(std::uint64_t call, std::uint32_t tasks, std::uint64_t index,
                std::uint8_t* into) const;
  void ExpectedOfPair(std::uint64_t call, std::uint32_t tasks, std::uint64_t index,
                      std::uint8_t* into) const;
  bool CheckReduced(std::uint64_t call, std::uint32_t tasks, const std::uint8_t* output) const;

  const Operation operation_;
  const ReduceOp op_;
  const OperandType type_;
  const std::uint32_t tasks_;
  const std::uint64_t bytes_;
};

}  // namespace percs
