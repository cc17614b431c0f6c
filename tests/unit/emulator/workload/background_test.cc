// Method: a workload beside traffic keeps its own results (every operation of the CAUs is compared
// with a serial reference, every call of a collective, too), the traffic keeps its own (each
// message delivered once), neither is taken for the other's, and the digest does not depend on the
// placement. What the traffic costs is seen as time.
#include "emulator/workload/background.h"

#include <gtest/gtest.h>

#include <numeric>

#include "emulator/scenario/link_settings.h"
#include "emulator/sim/run.h"
#include "tests/support/split_run.h"

namespace percs {
namespace {

constexpr std::uint64_t kIterations = 60;

Scenario Hubs(int hubs) {
  Scenario s;
  s.topology = {.supernodes = 1, .drawers = 1, .hubs = hubs};
  TreeSpec tree;
  tree.name = "all";
  tree.members.resize(static_cast<std::size_t>(hubs));
  std::iota(tree.members.begin(), tree.members.end(), 0);
  tree.fan_out = 2;
  s.trees.push_back(tree);
  return s;
}

Scenario CauBeside(std::optional<PatternWorkload> background) {
  Scenario s = Hubs(6);
  CauWorkload loop;
  loop.steps = {CauStep::kAllreduce, CauStep::kBarrier};
  loop.iterations = kIterations;
  loop.operands = 3;
  loop.compute_max = 500 * kNanosecond;
  s.workload = loop;
  s.background = background;
  return s;
}

PatternWorkload Reliable(std::uint64_t count) {
  PatternWorkload traffic;
  traffic.count = count;
  traffic.load = 0.6;
  traffic.reliable = true;
  traffic.payload = PayloadMode::kVerified;
  return traffic;
}

RunResult CheckedPayloads(const Scenario& scenario) {
  const auto result = RunScenario(scenario, RunOptions());
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return {};
  EXPECT_TRUE(result->violations.empty()) << result->violations.front();
  EXPECT_EQ(result->total.payload_errors, 0u);
  return *result;
}

TEST(Background, BothGetWhatIsTheirs) {
  Scenario s = CauBeside(Reliable(40));
  s.faults = {SetLinkDown(10 * kMicrosecond,
                          *Topology::Create(s.topology)->ParseLink("sn0-d0-h0/sn0-d0-h1"))};
  const RunResult result = CheckedPayloads(s);
  ASSERT_EQ(result.cau_tasks.size(), 6u);
  for (const CauTaskResult& task : result.cau_tasks) {
    EXPECT_EQ(task.problem, "");
    EXPECT_EQ(task.steps_failed, 0u);
    EXPECT_EQ(task.steps_right, 2 * kIterations);
  }
  EXPECT_EQ(result.total.messages_sent, 6u * 40);
  EXPECT_EQ(result.total.messages_delivered, 6u * 40);
}

TEST(Background, ItCostsTheWorkloadTimeAndNothingElse) {
  const RunResult quiet = CheckedPayloads(CauBeside(std::nullopt));
  PatternWorkload raw;
  raw.load = 0.9;
  raw.measure = 2 * kMillisecond;
  const RunResult busy = CheckedPayloads(CauBeside(raw));
  Time quiet_end = 0, busy_end = 0;
  for (const CauTaskResult& task : quiet.cau_tasks) quiet_end = std::max(quiet_end, task.finished);
  for (const CauTaskResult& task : busy.cau_tasks) {
    EXPECT_EQ(task.steps_right, 2 * kIterations);
    busy_end = std::max(busy_end, task.finished);
  }
  EXPECT_GT(busy_end, quiet_end);
  EXPECT_GT(busy.total.measured_bytes_accepted, 0u);
}

TEST(Background, EveryPlacementTellsTheSame) {
  const Scenario s = CauBeside(Reliable(25));
  const Digest digest = CheckedPayloads(s).digest;
  for (const int processes : {2, 6}) {
    test::SplitOptions split;
    split.processes = processes;
    const auto result = test::SplitRun(s, split);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->digest, digest);
  }
}

TEST(Background, CollectivesGoOnBesideRawPackets) {
  Scenario s = Hubs(4);
  CollectiveWorkload loop;
  loop.placement.nodes = 4;
  loop.placement.tasks_per_node = 4;
  loop.iterations = 20;
  s.workload = loop;
  const RunResult quiet = CheckedPayloads(s);
  s.background = PatternWorkload{.load = 0.8, .measure = kMillisecond};
  const RunResult busy = CheckedPayloads(s);
  EXPECT_EQ(busy.collective.wrong, 0u);
  EXPECT_EQ(busy.collective.tasks, quiet.collective.tasks);
  EXPECT_GT(busy.total.measured_bytes_accepted, 0u);
  EXPECT_GT(busy.collective.Nanoseconds(), quiet.collective.Nanoseconds());
}

TEST(Background, RefusesWhatCouldBeTakenForTheWorkloads) {
  Scenario s = Hubs(4);
  s.background = PatternWorkload();
  EXPECT_EQ(CheckBackground(s).code(),
            absl::StatusCode::kInvalidArgument);  // nothing beside which it could go
  s.workload = PatternWorkload();
  EXPECT_EQ(CheckBackground(s).code(), absl::StatusCode::kInvalidArgument);
  s.workload = CollectiveWorkload();
  EXPECT_TRUE(CheckBackground(s).ok());
  s.background->reliable = true;
  EXPECT_EQ(CheckBackground(s).code(), absl::StatusCode::kInvalidArgument);
  s.background->reliable = false;
  s.background->payload = PayloadMode::kVerified;
  EXPECT_EQ(CheckBackground(s).code(), absl::StatusCode::kInvalidArgument);
  s.workload = CauWorkload();
  EXPECT_TRUE(CheckBackground(s).ok());
}

}  // namespace
}  // namespace percs
