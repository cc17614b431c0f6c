// Method: small traces against their graphs, one broken trace per message, and seeded mutations of
// a good trace, which must be refused or be complete, never crash.
#include "emulator/workload/goal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "emulator/base/random.h"
#include "fmt/format.h"
#include "tests/support/seed.h"

namespace percs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kPingPong = R"(// two ranks
num_ranks 2
/* a comment
   of lines */
rank 0 {
l1: calc 100
l2: send 4b to 1 tag 7 cpu 1 nic 2
l2 requires l1
l3: recv 8b from 1   // no tag
l3 irequires l2
}
rank 1 { recv 4b from 0 tag 7
a: send 8b to 0 cpu 3
}
)";

std::string ErrorOf(std::string_view text) {
  auto trace = ParseGoal(text, "t.goal");
  EXPECT_EQ(trace.status().code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(trace.status().message());
}

// One rank's block in a trace of three ranks.
std::string Rank0(std::string_view body) {
  return fmt::format("num_ranks 3\nrank 0 {{\n{}\n}}\nrank 1 {{\n}}\nrank 2 {{}}\n", body);
}

TEST(Goal, ReadsOperationsDependenciesAndOptions) {
  auto trace = ParseGoal(kPingPong, "t.goal");
  ASSERT_TRUE(trace.ok()) << trace.status();
  ASSERT_EQ(trace->ranks.size(), 2u);
  const auto& r0 = trace->ranks[0];
  ASSERT_EQ(r0.size(), 3u);
  EXPECT_EQ(r0[0].kind, GoalOp::Kind::kCalc);
  EXPECT_EQ(r0[0].size, 100u);
  EXPECT_THAT(r0[0].after_finish, ElementsAre(1));
  EXPECT_EQ(r0[1].kind, GoalOp::Kind::kSend);
  EXPECT_EQ(r0[1].size, 4u);
  EXPECT_EQ(r0[1].peer, 1u);
  EXPECT_EQ(r0[1].tag, 7u);
  EXPECT_EQ(r0[1].cpu, 1u);
  EXPECT_EQ(r0[1].nic, 2u);
  EXPECT_EQ(r0[1].dependencies, 1u);
  EXPECT_THAT(r0[1].after_start, ElementsAre(2));
  EXPECT_EQ(r0[2].kind, GoalOp::Kind::kRecv);
  EXPECT_EQ(r0[2].tag, 0u);
  ASSERT_EQ(trace->ranks[1].size(), 2u);
  EXPECT_EQ(trace->ranks[1][0].kind, GoalOp::Kind::kRecv);
  EXPECT_EQ(trace->ranks[1][1].cpu, 3u);
}

TEST(Goal, LabelsMayBeUsedBeforeTheyAreDefinedAndRanksComeInAnyOrder) {
  auto trace = ParseGoal(
      "num_ranks 2\r\nrank 1\n{ b requires a\r\nb: calc 1\na: calc 2 }\nrank 0 {}", "t.goal");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_TRUE(trace->ranks[0].empty());
  EXPECT_THAT(trace->ranks[1][1].after_finish, ElementsAre(0));
}

TEST(Goal, AKeywordMayBeALabel) {
  auto trace = ParseGoal("num_ranks 1 rank", "t.goal");
  EXPECT_FALSE(trace.ok());
  trace =
      ParseGoal("num_ranks 1\nrank 0 {\nsend: calc 1\ntag: calc 2\ntag requires send\n}", "t.goal");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->ranks[0][1].dependencies, 1u);
}

TEST(Goal, LimitsAreLegal) {
  auto trace =
      ParseGoal(Rank0("calc 1000000000000000 cpu 4095 nic 4095\nsend 1099511627776b to 1 tag "
                      "4294967295\n"),
                "t.goal");
  EXPECT_THAT(std::string(trace.status().message()), HasSubstr("this send has no recv"));
}

TEST(Goal, HasNoMoreStatementsThanTheLimitAllows) {
  const std::string text =
      "num_ranks 2\nrank 0 {\na: calc 1\nb: calc 2\n}\nrank 1 {\na: calc 3\nb: calc 4\n"
      "b requires a\n}";
  EXPECT_TRUE(ParseGoal(text, "t.goal", 5).ok());
  EXPECT_EQ(ParseGoal(text, "t.goal", 4).status().message(),
            "t.goal:9:1: more than 4 operations and dependencies, which is the limit of a trace; "
            "expected a shorter part of it");
}

TEST(Goal, ReportsAMissingOrBadHeader) {
  EXPECT_EQ(
      ErrorOf("\n  rank 0 {\n}"),
      "t.goal:2:3: found 'rank'; a trace starts with its number of ranks, as in `num_ranks 32`");
  EXPECT_EQ(ErrorOf(""),
            "t.goal:1:1: found the end of the file; a trace starts with its number of "
            "ranks, as in `num_ranks 32`");
  EXPECT_EQ(ErrorOf("num_ranks 0"), "t.goal:1:1: num_ranks is 0; expected at least 1");
  EXPECT_EQ(ErrorOf("num_ranks 1\nnum_ranks 1"),
            "t.goal:2:1: num_ranks is given twice; expected once, on the first line");
  EXPECT_EQ(ErrorOf("num_ranks 99999999999999999999999999999"),
            "t.goal:1:11: the number of ranks 999999999999999999999999... is too large; expected "
            "at most 1048576");
}

TEST(Goal, ReportsRanksOutOfRangeTwiceOrMissing) {
  EXPECT_EQ(ErrorOf("num_ranks 2\nrank 2 {}"),
            "t.goal:2:6: rank 2 is out of range; num_ranks 2 allows 0 to 1");
  EXPECT_EQ(ErrorOf("num_ranks 2\nrank 1 {}\nrank 1 {}"),
            "t.goal:3:1: rank 1 is given twice, first on line 2; expected one block per rank");
  EXPECT_EQ(ErrorOf("num_ranks 3\nrank 2 {}\nrank 0 {}\n"),
            "t.goal:4:1: rank 1 is missing; num_ranks 3 needs a block for each of 0 to 2");
  EXPECT_EQ(ErrorOf("num_ranks 2\n}"),
            "t.goal:2:1: found '}' outside a rank; expected `rank R {` with R from 0 to 1");
}

TEST(Goal, ReportsWhatIsNotClosed) {
  EXPECT_EQ(ErrorOf("num_ranks 1\nrank 0 {\ncalc 1\n"),
            "t.goal:2:1: the block of rank 0 never ends; close it with }");
  EXPECT_EQ(ErrorOf("num_ranks 1\nrank 0 {\ncalc 1 /* oops\n}\n"),
            "t.goal:3:8: this comment never ends; close it with */");
  EXPECT_EQ(ErrorOf("num_ranks 1\nrank 0\ncalc 1"),
            "t.goal:3:1: found 'calc' where '{' belongs; expected `rank 0 {`");
}

TEST(Goal, ReportsBadLabels) {
  EXPECT_EQ(ErrorOf(Rank0("l1: calc 1\nl1 requires l9")),
            "t.goal:4:13: rank 0 has no label 'l9'; expected the label of one of its operations");
  EXPECT_EQ(ErrorOf(Rank0("l1: calc 1\nl1: calc 2")),
            "t.goal:4:1: label 'l1' of rank 0 is given twice, first on line 3; expected one "
            "operation per label");
  EXPECT_EQ(ErrorOf(Rank0("l1: calc 1\nl1 requires")),
            "t.goal:4:12: found the end of the line where a label belongs; expected `l1 requires "
            "LABEL`");
  EXPECT_EQ(ErrorOf(Rank0("l1 needs l2")),
            "t.goal:3:4: found 'needs' after 'l1'; expected ':' and an operation, 'requires' or "
            "'irequires'");
}

TEST(Goal, ReportsACycleWithItsOperations) {
  EXPECT_EQ(ErrorOf(Rank0("z: calc 1\na: calc 1\nb: calc 1\nc: calc 1\nd: calc 1\na requires c\n"
                          "c irequires b\nb requires a\nd requires a\na requires z")),
            "t.goal:4:1: dependencies of rank 0 go in a circle: 'a' needs 'c' needs 'b' needs 'a'; "
            "expected an order in which each can start");
  EXPECT_THAT(ErrorOf(Rank0("a: calc 1\na requires a")), HasSubstr("'a' needs 'a'"));
}

TEST(Goal, ReportsBadOperations) {
  EXPECT_EQ(ErrorOf(Rank0("l1: wait 5")),
            "t.goal:3:5: found 'wait' where an operation belongs; expected calc, send or recv");
  EXPECT_EQ(ErrorOf(Rank0("calc")),
            "t.goal:3:5: the time in nanoseconds is missing, found the end of "
            "the line; expected a number from 0 to 1000000000000000");
  EXPECT_EQ(ErrorOf(Rank0("calc 18446744073709551617")),
            "t.goal:3:6: the time in nanoseconds 18446744073709551617 is too large; expected at "
            "most 1000000000000000");
  EXPECT_EQ(ErrorOf(Rank0("send 4 to 1")),
            "t.goal:3:8: found 'to' where 'b' belongs; expected `send 8b to 1 tag 0`");
  EXPECT_EQ(ErrorOf(Rank0("recv 4b to 1")),
            "t.goal:3:9: found 'to' where 'from' belongs; expected `recv 8b from 1 tag 0`");
  EXPECT_EQ(ErrorOf(Rank0("send 4b to 0")),
            "t.goal:3:12: rank 0 sends to itself; expected another rank");
  EXPECT_EQ(ErrorOf(Rank0("recv 4b from 3")),
            "t.goal:3:14: rank 3 is out of range; num_ranks 3 allows 0 to 2");
  EXPECT_EQ(ErrorOf(Rank0("recv 4b from -1")),
            "t.goal:3:14: the peer's rank is negative (a wildcard is not supported); expected a "
            "number from 0 to 4294967295");
  EXPECT_EQ(ErrorOf(Rank0("calc 4 tag 3")),
            "t.goal:3:8: found 'tag' after a calc; expected cpu, nic or a new line");
  EXPECT_EQ(ErrorOf(Rank0("calc 4 cpu 1 cpu 1")), "t.goal:3:14: cpu is given twice; expected once");
  EXPECT_EQ(ErrorOf(Rank0("calc 4 ; calc 5")),
            "t.goal:3:8: found ';' after a complete statement; expected a new line");
  EXPECT_EQ(ErrorOf(Rank0("\x80")),
            "t.goal:3:1: found byte 0x80; expected a statement, as in "
            "`l1: calc 1000`, or the closing }");
}

TEST(Goal, ReportsTheFirstUnmatchedMessage) {
  EXPECT_EQ(
      ErrorOf("num_ranks 2\nrank 0 {\nsend 1b to 1 tag 3\nx: send 1b to 1 tag 3\n}\n"
              "rank 1 {\nrecv 1b from 0 tag 3\n}"),
      "t.goal:4:1: this send has no recv: from rank 0 to rank 1 with tag 3 the trace has 2 sends "
      "and 1 recv; expected as many of each");
  EXPECT_EQ(
      ErrorOf("num_ranks 2\nrank 0 {\nsend 1b to 1 tag 3\n}\nrank 1 {\nrecv 1b from 0 tag 4\n}"),
      "t.goal:3:1: this send has no recv: from rank 0 to rank 1 with tag 3 the trace has 1 send "
      "and 0 recvs; expected as many of each");
}

TEST(Goal, MutatedTracesAreRefusedOrComplete) {
  PERCS_TRACE_SEED();
  RandomStream random(test::Seed(), "goal");
  constexpr std::string_view kBits[] = {"{",   "}",           "\n",       "/*",
                                        "*/",  "//",          ":",        "b",
                                        "0",   "99999999999", "rank 0 {", "l1 requires l3\n",
                                        "tag", "-1",          "\0",       "\xff"};
  int accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text(kPingPong);
    for (std::uint32_t edits = 1 + random.Below(3); edits > 0; --edits) {
      const std::uint32_t at = random.Below(static_cast<std::uint32_t>(text.size()));
      switch (random.Below(3)) {
        case 0:
          text.erase(at, 1 + random.Below(8));
          break;
        case 1:
          text.insert(at, kBits[random.Below(std::size(kBits))]);
          break;
        default:
          text[at] = static_cast<char>(random.Below(256));
      }
      if (text.empty()) text = " ";
    }
    auto trace = ParseGoal(text, "m");
    accepted += trace.ok();
    if (!trace.ok()) {
      EXPECT_TRUE(trace.status().message().substr(0, 2) == "m:") << trace.status();
    }
  }
  EXPECT_GT(accepted, 500);
  EXPECT_LT(accepted, 15'000);
}

}  // namespace
}  // namespace percs
