// Method: operands by hand, at the edges of their types and at odd addresses.
#include "emulator/base/reduce_op.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <vector>

namespace percs {
namespace {

template <typename T>
T Reduced(ReduceOp op, OperandType type, T a, T b) {
  std::vector<char> into(sizeof(T) + 1), from(sizeof(T) + 1);
  std::memcpy(into.data() + 1, &a, sizeof(T));
  std::memcpy(from.data() + 1, &b, sizeof(T));
  Combine(op, type, 1, from.data() + 1, into.data() + 1);
  std::memcpy(&a, into.data() + 1, sizeof(T));
  return a;
}

TEST(ReduceOpTest, FixedPointWrapsAround) {
  constexpr std::int32_t kMax32 = std::numeric_limits<std::int32_t>::max();
  EXPECT_EQ(Reduced<std::int32_t>(ReduceOp::kSum, OperandType::kInt32, kMax32, 1),
            std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(Reduced<std::uint64_t>(ReduceOp::kProd, OperandType::kUint64, ~0ull, 2), ~0ull - 1);
}

TEST(ReduceOpTest, MinAndMaxKnowTheSign) {
  EXPECT_EQ(Reduced<std::int64_t>(ReduceOp::kMin, OperandType::kInt64, -1, 1), -1);
  EXPECT_EQ(Reduced<std::uint64_t>(ReduceOp::kMin, OperandType::kUint64, ~0ull, 1), 1u);
  EXPECT_EQ(Reduced<double>(ReduceOp::kMax, OperandType::kDouble, -2.5, -3), -2.5);
}

TEST(ReduceOpTest, BitsAndNop) {
  EXPECT_EQ(Reduced<std::uint32_t>(ReduceOp::kAnd, OperandType::kUint32, 12, 10), 8u);
  EXPECT_EQ(Reduced<std::uint32_t>(ReduceOp::kOr, OperandType::kUint32, 12, 10), 14u);
  EXPECT_EQ(Reduced<std::uint32_t>(ReduceOp::kXor, OperandType::kUint32, 12, 10), 6u);
  EXPECT_EQ(Reduced<float>(ReduceOp::kNop, OperandType::kFloat, 12, 10), 12);
}

TEST(ReduceOpTest, RefusesBitsOfFloatingPoint) {
  for (ReduceOp op : {ReduceOp::kAnd, ReduceOp::kOr, ReduceOp::kXor}) {
    EXPECT_FALSE(CheckReduction(op, OperandType::kFloat).ok());
    EXPECT_FALSE(CheckReduction(op, OperandType::kDouble).ok());
    EXPECT_TRUE(CheckReduction(op, OperandType::kInt32).ok());
  }
  EXPECT_TRUE(CheckReduction(ReduceOp::kProd, OperandType::kDouble).ok());
}

TEST(ReduceOpTest, PairsKeepTheLowestPlaceOfTheExtreme) {
  const double theirs[] = {3, 7, 5, 2, 1, 4};
  double largest[] = {3, 9, 4, 1, 2, 8}, smallest[] = {3, 9, 4, 1, 2, 8};
  Combine(ReduceOp::kMaxLoc, OperandType::kDouble, 6, theirs, largest);
  Combine(ReduceOp::kMinLoc, OperandType::kDouble, 6, theirs, smallest);
  EXPECT_THAT(largest, testing::ElementsAre(3, 7, 5, 2, 2, 8));
  EXPECT_THAT(smallest, testing::ElementsAre(3, 7, 4, 1, 1, 4));
}

TEST(ReduceOpTest, NamesReadBack) {
  for (int i = 0; i < kSoftwareReduceOps; ++i) {
    EXPECT_EQ(ParseOp(OpName(static_cast<ReduceOp>(i))), static_cast<ReduceOp>(i));
  }
  for (int i = 0; i < kOperandTypes; ++i) {
    EXPECT_EQ(ParseType(TypeName(static_cast<OperandType>(i))), static_cast<OperandType>(i));
  }
  EXPECT_FALSE(ParseOp("average").has_value());
  EXPECT_FALSE(ParseType("int16").has_value());
}

}  // namespace
}  // namespace percs
