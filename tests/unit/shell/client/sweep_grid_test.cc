// Method: axes from texts, grids from axes, and what makes a point another one.
#include "client/lib/sweep_grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace percs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> Values(const std::string& values) {
  const auto axis = ParseSweepAxis("load=" + values);
  return axis.ok() ? axis->values : std::vector<std::string>{std::string(axis.status().message())};
}

TEST(SweepGridTest, RangesAreExactAndHaveUnits) {
  EXPECT_THAT(Values("0.1..0.5:0.1"), ElementsAre("0.1", "0.2", "0.3", "0.4", "0.5"));
  EXPECT_THAT(Values("0.05..0.2:0.1"), ElementsAre("0.05", "0.15"));
  EXPECT_THAT(Values("1us..5us:2us"), ElementsAre("1us", "3us", "5us"));
  EXPECT_THAT(Values("2..4"), ElementsAre("2", "3", "4"));
  EXPECT_THAT(Values("-1..1:0.5"), ElementsAre("-1", "-0.5", "0", "0.5", "1"));
  EXPECT_THAT(Values("0.9..1.1:0.1"), ElementsAre("0.9", "1", "1.1"));
  EXPECT_THAT(Values("uniform,../x,1..2"), ElementsAre("uniform", "../x", "1", "2"));
  EXPECT_THAT(Values("1e9..2e9:1e9"), ElementsAre("1e9", "2e9"));
  EXPECT_EQ(Values("0.001..0.999:0.001").size(), 999u);
}

TEST(SweepGridTest, WhatIsNoAxisIsRefused) {
  EXPECT_THAT(ParseSweepAxis("load").status().message(), HasSubstr("write KEY=VALUES"));
  EXPECT_THAT(ParseSweepAxis("=1").status().message(), HasSubstr("write KEY=VALUES"));
  EXPECT_THAT(Values("1,,2")[0], HasSubstr("one of its values is empty"));
  EXPECT_THAT(Values("1us..5ms:2us")[0], HasSubstr("with the same unit everywhere"));
  EXPECT_THAT(Values("0.1..0.9")[0], HasSubstr("is not a range"));
  EXPECT_THAT(Values("0..1:0")[0], HasSubstr("a step above 0"));
  EXPECT_THAT(Values("2..1:1")[0], HasSubstr("has to go up"));
  EXPECT_THAT(Values("0..100000000:1")[0], HasSubstr("more than 1000000 values"));
}

TEST(SweepGridTest, TheLastAxisChangesFastestAndRepetitionsFasterStill) {
  const auto points = SweepPoints({{"a", {"1", "2"}}, {"b", {"x", "y"}}}, 2);
  ASSERT_TRUE(points.ok());
  ASSERT_EQ(points->size(), 8u);
  EXPECT_THAT((*points)[1].over, ElementsAre("a=1", "b=x"));
  EXPECT_EQ((*points)[1].repeat, 1u);
  EXPECT_THAT((*points)[2].values, ElementsAre("1", "y"));
  EXPECT_THAT((*points)[4].values, ElementsAre("2", "x"));
  EXPECT_FALSE(SweepPoints({{"a", {"1"}}, {"a", {"2"}}}, 1).ok());
  EXPECT_FALSE(SweepPoints({{"a", {"1", "2"}}}, kSweepPointsMax).ok());
}

TEST(SweepGridTest, EqualScenariosHaveEqualKeysAndNoOthersHave) {
  v1::Scenario one, same, other;
  one.mutable_workload()->mutable_pattern()->set_load(0.1);
  same.CopyFrom(one);
  other.CopyFrom(one);
  other.set_seed(2);
  EXPECT_EQ(SweepKey(one), SweepKey(same));
  EXPECT_NE(SweepKey(one), SweepKey(other));
  EXPECT_EQ(SweepKey(one).size(), 32u);
}

}  // namespace
}  // namespace percs
