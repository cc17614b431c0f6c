// Blades with programs among hubs: what they exchange over the network, what breaks, and that none
// of it depends on where nodes live.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "emulator/node/cell_node.h"
#include "emulator/scenario/link_settings.h"
#include "tests/support/executors.h"
#include "tests/support/play.h"
#include "tests/support/seed.h"
#include "tests/support/split_run.h"

namespace percs {
namespace {

using test::kThreads;
using test::Play;
using test::SplitOptions;
using test::SplitRun;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A drawer of hubs that is busy with itself, and two blades that talk to each other and to a hub.
Scenario DrawerAndTwoBlades() {
  Scenario s;
  s.topology = {1, 1, 8, 1};
  s.topology.blades = {{"blade0", "sn0-d0-h0"}, {"blade1", "sn0-d0-h7"}};
  s.workload = AllToAllWorkload{8192, Schedule::kSpread, true, PayloadMode::kVerified};
  s.blades.resize(2);
  s.blades[0].programs = {ExchangeProgram{9, 16, 16384, 3}, ExchangeProgram{3, 5, 4096, 2}};
  s.blades[1].type = "QS22";
  s.blades[1].programs = {CollectiveProgram{CollectiveOperation::kReduce, "auto", 9, 256, 5},
                          ExchangeProgram{8, 16, 16384, 3}};
  return s;
}

TEST(BladePrograms, ExchangeRealBytesWithBladesAndHubs) {
  const RunResult result = Play(DrawerAndTwoBlades());
  EXPECT_THAT(result.violations, IsEmpty());
  ASSERT_EQ(result.programs.size(), 4u);
  for (const BladeProgramResult& program : result.programs) EXPECT_EQ(program.problem, "");
  EXPECT_EQ(result.programs[0].program, "exchange of 16 x 16384 bytes with blade1");
  EXPECT_EQ(result.programs[0].iterations, 3u);
  EXPECT_EQ(result.programs[1].program, "exchange of 5 x 4096 bytes with sn0-d0-h3");
  EXPECT_GE(result.programs[1].started, result.programs[0].finished);
  EXPECT_EQ(result.programs[2].node, 9u);
  // 8 x 7 pairs of hubs, three rounds of two blades, two of a blade and a hub.
  EXPECT_EQ(result.total.messages_delivered, 56u + 6 + 4);
  EXPECT_EQ(result.total.payload_bytes_verified, 56u * 8192 + 6 * 16 * 16384 + 4 * 5 * 4096);
  EXPECT_GE(result.total.blade[2], 2u * (6 * 16 * 16384 + 2 * 5 * 4096)) << "DMA bytes";
}

TEST(BladePrograms, CallCollectivesAndStopWhenAnSpeGoesDown) {
  Scenario scenario = DrawerAndTwoBlades();
  scenario.blades[0].programs = {
      CollectiveProgram{CollectiveOperation::kBarrier, "ATOBarB", 16, 0, 100},
      CollectiveProgram{CollectiveOperation::kBroadcast, "auto", 12, 4096, 10},
      CollectiveProgram{CollectiveOperation::kReduce, "auto", 16, 128, 20}};
  scenario.blades[1].programs.clear();
  const RunResult whole = Play(scenario);
  EXPECT_THAT(whole.violations, IsEmpty());
  ASSERT_EQ(whole.programs.size(), 3u);
  EXPECT_EQ(whole.programs[0].program, "barrier ATOBarB on 16 SPEs");
  EXPECT_EQ(whole.programs[1].program, "broadcast auto on 12 SPEs, 4096 bytes");
  EXPECT_EQ(whole.programs[2].iterations, 20u);
  for (const BladeProgramResult& p : whole.programs) EXPECT_EQ(p.problem, "");

  const Time middle = (whole.programs[1].started + whole.programs[1].finished) / 2;
  scenario.blade_faults = {{BladeFault::Kind::kSpeDown, middle, 8, 11, 0, 1}};
  const RunResult cut = Play(scenario);
  ASSERT_EQ(cut.programs.size(), 2u);
  EXPECT_EQ(cut.programs[1].problem, "SPE 11 went down; the other SPEs would wait for it for ever");
  scenario.blade_faults[0].unit = 12;  // takes no part in this one, but in the next
  const RunResult next = Play(scenario);
  ASSERT_EQ(next.programs.size(), 3u);
  EXPECT_EQ(next.programs[1].problem, "");
  EXPECT_EQ(next.programs[2].problem, "SPE 12 is down");
}

// What a hub does besides answering blades is as it is without them.
TEST(BladePrograms, LeaveTheWorkloadOfTheHubThatAnswersThemWhole) {
  Scenario scenario = DrawerAndTwoBlades();
  CollectiveWorkload tasks;
  tasks.placement = {8, 2, 1, ThreadMapping::kCore};
  tasks.bytes = 4096;
  tasks.iterations = 5;
  scenario.workload = tasks;
  const RunResult collective = Play(scenario);
  EXPECT_THAT(collective.violations, IsEmpty());
  EXPECT_EQ(collective.collective.tasks, 16u);
  EXPECT_EQ(collective.collective.wrong, 0u);
  for (const BladeProgramResult& p : collective.programs) EXPECT_EQ(p.problem, "");

  TreeSpec tree;
  tree.name = "all";
  for (NodeId hub = 0; hub < 8; ++hub) tree.members.push_back(hub);
  scenario.trees = {tree};
  CauWorkload loop;
  loop.iterations = 5;
  scenario.workload = loop;
  const RunResult cau = Play(scenario);
  EXPECT_THAT(cau.violations, IsEmpty());
  EXPECT_EQ(cau.cau_tasks.size(), 8u);
}

// The PPE starts one SPE after the other; the first ones wait for the last already.
TEST(BladePrograms, ACollectiveEndsWheneverAnSpeOfItGoesDown) {
  Scenario scenario = DrawerAndTwoBlades();
  scenario.blades[0].programs = {
      CollectiveProgram{CollectiveOperation::kBarrier, "ATOBarB", 16, 0, 100}};
  scenario.blades[1].programs.clear();
  const Time end = Play(scenario).programs[0].finished;
  for (const int spe : {0, 7, 15}) {
    for (int step = 0; step < 40; ++step) {
      scenario.blade_faults = {{BladeFault::Kind::kSpeDown, step * end / 40, 8, spe, 0, 1}};
      const RunResult cut = Play(scenario);
      ASSERT_EQ(cut.programs.size(), 1u);
      EXPECT_THAT(cut.programs[0].problem, HasSubstr("down")) << "SPE " << spe << ", " << step;
      EXPECT_LT(cut.programs[0].iterations, 100u);
    }
  }
}

TEST(BladePrograms, OfCollectivesThatCannotBeAreRefusedWithTheRule) {
  const auto refusal = [](const CollectiveProgram& program) {
    return std::string(CheckCollective(program).message());
  };
  EXPECT_TRUE(CheckCollective(CollectiveProgram()).ok());
  EXPECT_THAT(refusal({CollectiveOperation::kBarrier, "auto", 17, 0, 1}), HasSubstr("17"));
  EXPECT_THAT(refusal({CollectiveOperation::kBarrier, "ATOBat", 16, 0, 1}), HasSubstr("ATOBar"));
  EXPECT_THAT(refusal({CollectiveOperation::kReduce, "auto", 16, 130, 1}),
              HasSubstr("4-byte elements"));
  EXPECT_THAT(refusal({CollectiveOperation::kReduce, "ATORed", 16, 4 * 513, 1}), HasSubstr("512"));
  EXPECT_THAT(refusal({CollectiveOperation::kReduce, "auto", 16, 4 * 2049, 1}), HasSubstr("2048"));
}

TEST(BladePrograms, GiveTheSameDigestInThreadsAndProcesses) {
  PERCS_TRACE_SEED();
  Scenario scenario = DrawerAndTwoBlades();
  scenario.blade_faults = {{BladeFault::Kind::kSpeDown, 30 * kMicrosecond, 8, 3, 0, 1},
                           {BladeFault::Kind::kChipLinkDegraded, 40 * kMicrosecond, 9, 0, 0, 0.25},
                           {BladeFault::Kind::kRingLost, 20 * kMicrosecond, 9, 1, 2, 1}};
  const RunResult one = Play(scenario);
  EXPECT_THAT(one.violations, IsEmpty());
  RunOptions options;
  options.threads = 2;
  options.executor = &kThreads;
  const auto two = RunScenario(scenario, options);
  ASSERT_TRUE(two.ok()) << two.status();
  EXPECT_EQ(one.digest, two->digest);
  for (const int processes : {2, 3, 5}) {
    SplitOptions split;
    split.processes = processes;
    split.process_of = [processes](NodeId node) { return static_cast<int>(node * 3) % processes; };
    split.seed = test::Seed();
    const auto result = SplitRun(scenario, split);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(one.digest, result->digest) << processes;
  }
}

TEST(BladePrograms, APpeTakesOverFromAnSpeThatIsDown) {
  Scenario scenario = DrawerAndTwoBlades();
  const RunResult whole = Play(scenario);
  for (const Time at : {Time{0}, 10 * kMicrosecond, 100 * kMicrosecond}) {
    scenario.blade_faults = {{BladeFault::Kind::kSpeDown, at, 8, 3, 0, 1}};
    const RunResult result = Play(scenario);
    EXPECT_THAT(result.violations, IsEmpty());
    EXPECT_EQ(result.total.messages_delivered, whole.total.messages_delivered);
    EXPECT_LT(result.total.blade[2], whole.total.blade[2]) << "DMA bytes";
    EXPECT_NE(result.digest, whole.digest);
    for (const BladeProgramResult& program : result.programs) EXPECT_EQ(program.problem, "");
  }
}

TEST(BladePrograms, AreSlowerOverADegradedChipLinkAndWithFewerRings) {
  Scenario scenario = DrawerAndTwoBlades();
  const Time whole = Play(scenario).programs[0].finished;
  scenario.blade_faults = {{BladeFault::Kind::kChipLinkDegraded, 0, 8, 0, 0, 0.01}};
  EXPECT_GT(Play(scenario).programs[0].finished, whole);
  scenario.blade_faults = {{BladeFault::Kind::kRingLost, 0, 8, 0, 0, 1},
                           {BladeFault::Kind::kRingLost, 0, 8, 0, 2, 1}};
  EXPECT_GE(Play(scenario).programs[0].finished, whole);
}

TEST(BladePrograms, GiveUpWhenTheNetworkPortIsDeadForGood) {
  Scenario scenario = DrawerAndTwoBlades();
  const auto topology = Topology::Create(scenario.topology);
  scenario.faults = {SetLinkDown(5 * kMicrosecond, *topology->ParseLink("blade0:N0"))};
  const RunResult result = Play(scenario);
  EXPECT_THAT(result.violations, IsEmpty());
  ASSERT_EQ(result.programs.size(), 3u) << "the second program of blade0 never starts";
  EXPECT_EQ(result.programs[0].problem, "message 0 to blade1 failed after its last retransmission");
  EXPECT_EQ(result.programs[2].problem, "message 0 to blade0 failed after its last retransmission");
  EXPECT_EQ(result.failed.size(), 2u);
}

TEST(BladePrograms, ThatWaitForAPeerThatNeverSendsAreNamedInTheDeadlock) {
  Scenario scenario = DrawerAndTwoBlades();
  scenario.blades[1].programs.clear();
  const auto result = RunScenario(scenario, RunOptions());
  EXPECT_EQ(result.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(result.status().message()),
              HasSubstr("blade0: PPE 0 waits for an event from outside the blade"));
}

TEST(BladePrograms, OfAnUnknownTypeOrPartAreRefused) {
  Scenario scenario = DrawerAndTwoBlades();
  scenario.blades[0].type = "QS23";
  EXPECT_THAT(std::string(RunScenario(scenario, RunOptions()).status().message()),
              HasSubstr("QS22"));
  scenario = DrawerAndTwoBlades();
  scenario.blade_faults = {{BladeFault::Kind::kSpeDown, 0, 8, 16, 0, 1}};
  EXPECT_EQ(RunScenario(scenario, RunOptions()).status().message(),
            "SPE 16 does not exist; a blade has SPEs 0 to 15");
  scenario.blade_faults = {{BladeFault::Kind::kSpeDown, 0, 2, 1, 0, 1}};
  EXPECT_EQ(RunScenario(scenario, RunOptions()).status().message(),
            "sn0-d0-h2 is not a blade; only blades have SPEs, rings and chip links");
}

TEST(BladeCounters, AreAsManyAsTheBladeHas) {
  int count = 0;
  cell::BladeStats().Visit([&count](const char*, std::uint64_t) { ++count; });
  EXPECT_EQ(count, kBladeCounters);
}

}  // namespace
}  // namespace percs
