// Boundaries of windows, tasks and times: at every documented number of windows all ways to run a
// scenario agree, and what cannot be run is refused before it begins.
#include "emulator/sim/check_scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulator/scenario/link_settings.h"
#include "emulator/sim/run.h"
#include "tests/support/split_run.h"
#include "tests/unit/emulator/hfi/window_script.h"

namespace percs {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

Scenario OfPattern(int windows_per_hfi) {
  Scenario s;
  s.topology = {1, 1, 3, 1};
  s.parameters.windows_per_hfi = windows_per_hfi;
  PatternWorkload pattern;
  pattern.count = 40;
  pattern.load = 0;
  pattern.reliable = true;
  s.workload = pattern;
  return s;
}

std::string Refusal(const Scenario& scenario, RunsOn where) {
  const absl::Status status = CheckScenario(scenario, where);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

TEST(CheckScenarioTest, EveryNumberOfWindowsRunsEverywhere) {
  for (const int windows : {1, 2, 3, 4, 5, 32'767, 32'768}) {
    for (const Workload& workload :
         {OfPattern(windows).workload, Workload(AllToAllWorkload{5000, Schedule::kSpread, true})}) {
      SCOPED_TRACE(windows);
      Scenario scenario = OfPattern(windows);
      scenario.workload = workload;
      const auto one = RunScenario(scenario, {});
      ASSERT_TRUE(one.ok()) << one.status();
      EXPECT_THAT(one->violations, IsEmpty());
      const auto split = test::SplitRun(scenario, test::Processes(3));
      ASSERT_TRUE(split.ok()) << split.status();
      EXPECT_EQ(split->digest, one->digest);
    }
  }
}

TEST(CheckScenarioTest, WindowsThatTrafficUsesExist) {
  for (int windows = 1; windows <= 300; ++windows) {
    P7ihParameters parameters;
    parameters.windows_per_hfi = windows;
    for (std::uint64_t i = 0; i < 2 * kHfiPorts; ++i) {
      EXPECT_LT(SpreadWindow(i, parameters), kHfisPerHub * windows);
      if (windows < 4) continue;
      EXPECT_EQ(SpreadWindow(i, parameters), i % 8 / 4 * windows + i % 4);
    }
  }
}

// 65,536 windows, one more than 16 bits count to: whoever looks at all of them comes to an end.
TEST(CheckScenarioTest, AMulticastDatagramReachesAHubWithMostWindows) {
  const NodeId group = 2;
  test::Script sender(0, 1), receiver(1, 1);
  sender.Open(0, 0).At(20 * kMicrosecond);
  sender.Send(WindowOp::kIpSend, group, 9, test::Pattern(700, 3));
  receiver.Reserve(0xfffe);
  receiver.Fifos(2, 2);
  WindowStep& join = receiver.Do({});
  join.operation.op = WindowOp::kJoin;
  join.operation.node = group;
  receiver.AwaitReceived().expect_data = test::Pattern(700, 3);
  TopologySpec spec{1, 1, 2, 1};
  spec.multicast = {{"group", "sn0-d0-h0", {"sn0-d0-h1"}}};
  Scenario s = test::Machine(spec, {sender, receiver});
  s.parameters.windows_per_hfi = 32'768;
  const RunResult result = test::PlayPrograms(s);
  EXPECT_EQ(test::Counted(result, HfiCounter::kReceived), 1u);
}

TEST(CheckScenarioTest, TasksNeedAWindowEach) {
  Scenario s = OfPattern(2);
  CollectiveWorkload tasks;
  tasks.placement.nodes = 3;
  tasks.placement.tasks_per_node = 4;
  s.workload = tasks;
  EXPECT_TRUE(CheckScenario(s, RunsOn::kProcess).ok());
  s.parameters.windows_per_hfi = 1;
  EXPECT_EQ(Refusal(s, RunsOn::kProcess),
            "4 tasks per node, each with a window of its own; a hub has 2 x windows_per_hfi = 2");
  EXPECT_EQ(RunScenario(s, {}).status().code(), absl::StatusCode::kInvalidArgument);
}

// 8,192 messages of one task can be told apart in an operation.
TEST(CheckScenarioTest, ALinearAlgorithmOfTooManyTasksIsRefused) {
  Scenario s;
  s.topology = {3, 4, 8, 1};
  CollectiveWorkload tasks;
  tasks.operation = Operation::kAlltoall;
  tasks.algorithm = "p2p:pairwise";
  tasks.placement.tasks_per_node = 128;
  tasks.placement.threads_per_core = 4;
  tasks.placement.nodes = 64;
  s.workload = tasks;
  EXPECT_TRUE(CheckScenario(s, RunsOn::kProcess).ok());
  tasks.placement.nodes = 65;
  s.workload = tasks;
  EXPECT_THAT(Refusal(s, RunsOn::kProcess),
              HasSubstr("of 8320 tasks takes 8319 messages of each task"));
}

TEST(CheckScenarioTest, ATraceWithTrafficBesideItThatNeverEndsIsForAFabric) {
  Scenario s = OfPattern(256);
  TraceWorkload trace;
  trace.trace.ranks.resize(2);
  s.workload = trace;
  s.background = PatternWorkload();
  EXPECT_THAT(Refusal(s, RunsOn::kProcess), HasSubstr("runs until it is stopped"));
  EXPECT_TRUE(CheckScenario(s, RunsOn::kDaemons).ok());
  s.background->measure = kMicrosecond;
  EXPECT_TRUE(CheckScenario(s, RunsOn::kProcess).ok());
}

// Flits on a long cable are no deadlock.
TEST(CheckScenarioTest, AStallLimitBelowTheTimeOfALinkIsRefused) {
  Scenario s = OfPattern(256);
  s.cables.push_back({{0, 0}, 100 * kMicrosecond});
  s.parameters.stall_limit = 200 * kMicrosecond;
  EXPECT_THAT(Refusal(s, RunsOn::kProcess),
              HasSubstr("stall_limit = 200us, but a packet and the credit for the next one may"));
  EXPECT_EQ(RunScenario(s, {}).status().code(), absl::StatusCode::kInvalidArgument);
  s.parameters.stall_limit = 210 * kMicrosecond;
  EXPECT_TRUE(CheckScenario(s, RunsOn::kProcess).ok());
  EXPECT_TRUE(RunScenario(s, {}).ok());
}

// W gives one packet after the other to the programs, whatever the links do.
TEST(CheckScenarioTest, AStallLimitBelowTheTimeOfASlowWIsRefused) {
  Scenario s = OfPattern(256);
  s.workload = AllToAllWorkload{.bytes = 8192, .reliable = false};
  s.parameters.w_flit_time = 100 * kMicrosecond;
  EXPECT_THAT(Refusal(s, RunsOn::kProcess),
              HasSubstr("what the HFIs of a hub hold 512 flits at w_rate, up to 51."));
  s.parameters.stall_limit = 52 * kMillisecond;
  EXPECT_TRUE(CheckScenario(s, RunsOn::kProcess).ok());
  EXPECT_TRUE(RunScenario(s, {}).ok());
}

// A flit that is replayed again and again stays where it is.
TEST(CheckScenarioTest, AStallLimitBelowTheTimeOfReplaysIsRefused) {
  Scenario s = OfPattern(256);
  s.cables.push_back({{0, 0}, kMillisecond});
  EXPECT_TRUE(CheckScenario(s, RunsOn::kProcess).ok());
  s.faults.push_back(SetErrorRate(0, {0, 0}, 1));
  EXPECT_THAT(Refusal(s, RunsOn::kProcess), HasSubstr("as many times as replay_limit"));
  s.parameters.stall_limit = 40 * kMillisecond;
  EXPECT_TRUE(CheckScenario(s, RunsOn::kProcess).ok());
  EXPECT_TRUE(RunScenario(s, {}).ok());
}

TEST(CheckScenarioTest, ALoadWithoutAnEndIsRefused) {
  Scenario s = OfPattern(256);
  PatternWorkload& pattern = std::get<PatternWorkload>(s.workload);
  pattern.load = 5e-324;
  EXPECT_THAT(Refusal(s, RunsOn::kProcess), HasSubstr("come every inf s on average"));
  pattern.load = 1e-12;  // a message takes 21 ns at full rate
  EXPECT_THAT(Refusal(s, RunsOn::kProcess), HasSubstr("write a load of at least 2.3e-11"));
  pattern.load = 2.3e-11;
  EXPECT_TRUE(CheckScenario(s, RunsOn::kProcess).ok());
  EXPECT_TRUE(RunScenario(s, {}).ok());
  pattern.load = 1e-9;
  pattern.count = 1'000'000'000;
  EXPECT_THAT(Refusal(s, RunsOn::kProcess), HasSubstr("or fewer messages"));
}

TEST(CheckScenarioTest, AShortLookaheadIsForOneProcess) {
  Scenario s = OfPattern(256);
  s.parameters.ll.wire = 0;
  s.parameters.credit_processing = 19 * kNanosecond;
  EXPECT_TRUE(CheckScenario(s, RunsOn::kProcess).ok());
  EXPECT_THAT(Refusal(s, RunsOn::kDaemons),
              HasSubstr("the lookahead of a distributed run is 19ns (credit on LL: wire 0ps + "
                        "credit processing 19ns); at least 20ns are needed"));
  EXPECT_EQ(test::SplitRun(s, test::Processes(2)).status(), CheckScenario(s, RunsOn::kDaemons));
}

}  // namespace
}  // namespace percs
