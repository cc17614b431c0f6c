// Method: every pair of operation and type by hand against the list of paper 000 section IV-D.
#include "emulator/cau/cau_reduction.h"

#include <gtest/gtest.h>

#include "emulator/cau/cau_port.h"

namespace percs {
namespace {

constexpr OperandType kFixed[] = {OperandType::kInt32, OperandType::kUint32, OperandType::kInt64,
                                  OperandType::kUint64};
constexpr OperandType kFloating[] = {OperandType::kFloat, OperandType::kDouble};

TEST(CauReduction, FixedPointHasNopSumMinMaxAndBitsButNoProduct) {
  for (const OperandType type : kFixed) {
    for (const ReduceOp op : {ReduceOp::kNop, ReduceOp::kSum, ReduceOp::kMin, ReduceOp::kMax,
                              ReduceOp::kAnd, ReduceOp::kOr, ReduceOp::kXor}) {
      EXPECT_TRUE(CheckCauReduction(op, type, 8).ok()) << OpName(op) << " " << TypeName(type);
    }
    EXPECT_EQ(CheckCauReduction(ReduceOp::kProd, type, 8).code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST(CauReduction, FloatingPointHasMinMaxSumProdOnly) {
  for (const OperandType type : kFloating) {
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kProd}) {
      EXPECT_TRUE(CheckCauReduction(op, type, 8).ok()) << OpName(op) << " " << TypeName(type);
    }
    for (const ReduceOp op : {ReduceOp::kNop, ReduceOp::kAnd, ReduceOp::kOr, ReduceOp::kXor}) {
      const absl::Status status = CheckCauReduction(op, type, 8);
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_NE(status.message().find("min, max, sum and prod"), std::string::npos) << status;
    }
  }
}

TEST(CauReduction, SizesUpTo64BytesInWholeOperands) {
  EXPECT_TRUE(CheckCauReduction(ReduceOp::kSum, OperandType::kDouble, 64).ok());
  EXPECT_TRUE(CheckCauReduction(ReduceOp::kNop, OperandType::kInt32, 0).ok());
  EXPECT_FALSE(CheckCauReduction(ReduceOp::kSum, OperandType::kDouble, 72).ok());
  EXPECT_FALSE(CheckCauReduction(ReduceOp::kSum, OperandType::kDouble, 12).ok());
  EXPECT_FALSE(CheckCauReduction(ReduceOp::kSum, OperandType::kInt32, 6).ok());
}

}  // namespace
}  // namespace percs
