// Triblades among the hubs of a PERCS drawer, joined by gateway links: collectives of CML over all
// their SPEs, checked in every call, beside traffic of the hubs; none of it depends on where nodes
// live, and what breaks has its reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "emulator/node/triblade_node.h"
#include "emulator/scenario/link_settings.h"
#include "emulator/sim/check_scenario.h"
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

Scenario DrawerAndTriblades(int triblades) {
  Scenario s;
  s.topology = {1, 1, 8, 1};
  s.workload = AllToAllWorkload{8192, Schedule::kSpread, true, PayloadMode::kVerified};
  for (int i = 0; i < triblades; ++i) {
    s.topology.blades.push_back(
        {"triblade" + std::to_string(i), "sn0-d0-h" + std::to_string(3 * i)});
    BladeConfig config;
    config.type = kTribladeType;
    config.programs = {CollectiveProgram{CollectiveOperation::kReduce, "auto", 16, 256, 3},
                       CollectiveProgram{CollectiveOperation::kBroadcast, "auto", 16, 4096, 2},
                       CollectiveProgram{CollectiveOperation::kBarrier, "auto", 16, 128, 2}};
    s.blades.push_back(config);
  }
  return s;
}

TEST(Triblades, RunCollectivesOfCmlOverAPercsDrawer) {
  const RunResult result = Play(DrawerAndTriblades(3));
  EXPECT_THAT(result.violations, IsEmpty());
  EXPECT_EQ(result.total.payload_errors, 0u);
  ASSERT_EQ(result.programs.size(), 9u);
  for (const BladeProgramResult& program : result.programs) EXPECT_EQ(program.problem, "");
  EXPECT_EQ(result.programs[0].program, "reduce of CML on 96 ranks, 256 bytes");
  EXPECT_EQ(result.programs[0].iterations, 3u);
  EXPECT_GT(result.programs[2].finished, result.programs[1].finished);
  EXPECT_GT(result.total.blade[2], 2u * 95 * 4096)
      << "DMA bytes: each SPE but the root takes the broadcasts";
  // 56 of the hubs; of the triblades at least a message and its answer per tree edge and call.
  EXPECT_GT(result.total.messages_delivered, 56u + 2 * 2 * 7);
}

TEST(Triblades, PluggedIntoEachOtherNeedNoHub) {
  Scenario s = DrawerAndTriblades(2);
  s.topology.blades = {{"triblade0", ""}, {"triblade1", "triblade0"}};
  const RunResult result = Play(s);
  EXPECT_THAT(result.violations, IsEmpty());
  for (const BladeProgramResult& program : result.programs) EXPECT_EQ(program.problem, "");
}

TEST(Triblades, GiveTheSameDigestInThreadsAndProcesses) {
  PERCS_TRACE_SEED();
  const Scenario scenario = DrawerAndTriblades(2);
  const RunResult one = Play(scenario);
  EXPECT_THAT(one.violations, IsEmpty());
  RunOptions options;
  options.threads = 2;
  options.executor = &kThreads;
  const auto two = RunScenario(scenario, options);
  ASSERT_TRUE(two.ok()) << two.status();
  EXPECT_EQ(one.digest, two->digest);
  for (const int processes : {2, 3}) {
    SplitOptions split;
    split.processes = processes;
    split.process_of = [processes](NodeId node) { return static_cast<int>(node) % processes; };
    split.seed = test::Seed();
    const auto result = SplitRun(scenario, split);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(one.digest, result->digest) << processes;
  }
}

// The gateway link of the second triblade is cut: its messages are given up, and its peers say so.
TEST(Triblades, ACutGatewayLinkFailsTheSendersWithTheReason) {
  Scenario scenario = DrawerAndTriblades(2);
  scenario.faults = {SetLinkDown(20 * kMicrosecond, {9, kBladePort})};
  const auto result = RunScenario(scenario, RunOptions());
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(std::string(result.status().message()),
              HasSubstr("the network has no route to triblade"));
}

TEST(Triblades, WithOtherProgramsThanCmlsOrThanEachOtherAreRefused) {
  Scenario scenario = DrawerAndTriblades(2);
  scenario.blades[1].programs.pop_back();
  const auto different = RunScenario(scenario, RunOptions());
  EXPECT_THAT(std::string(different.status().message()), HasSubstr("have different programs"));
  // The check says what the run says.
  EXPECT_EQ(CheckScenario(scenario, RunsOn::kProcess), different.status());
  scenario = DrawerAndTriblades(2);
  for (BladeConfig& blade : scenario.blades) blade.programs = {ExchangeProgram{}};
  EXPECT_THAT(std::string(RunScenario(scenario, RunOptions()).status().message()),
              HasSubstr("collectives of CML"));
  EXPECT_FALSE(CheckTribladeProgram({CollectiveOperation::kReduce, "PEBar", 16, 256, 3}).ok());
  EXPECT_FALSE(CheckTribladeProgram({CollectiveOperation::kReduce, "auto", 16, 100'000, 3}).ok());
}

TEST(Triblades, LosePartsOfTheirBladesAndSayWhatDoesNotExist) {
  const RunResult whole = Play(DrawerAndTriblades(2));
  Scenario scenario = DrawerAndTriblades(2);
  // Blades of the first triblade: a slow chip link of the second, and a ring of the third Cell.
  scenario.blade_faults = {{BladeFault::Kind::kChipLinkDegraded, kMicrosecond, 8, 1, 0, 0.01},
                           {BladeFault::Kind::kRingLost, kMicrosecond, 8, 2, 1, 1}};
  const RunResult slower = Play(scenario);
  EXPECT_THAT(slower.violations, IsEmpty());
  EXPECT_GT(slower.programs[2].finished, whole.programs[2].finished);
  EXPECT_NE(slower.digest, whole.digest);
  // SPE 20 is the fifth of the second blade: a peer puts into its local store, the others wait, and
  // this is why.
  scenario.blade_faults = {{BladeFault::Kind::kSpeDown, 20 * kMicrosecond, 9, 20, 0, 1}};
  const std::string lost(RunScenario(scenario, RunOptions()).status().message());
  EXPECT_THAT(lost, HasSubstr("triblade1: rank 48: SPE 0 at "));
  EXPECT_THAT(lost, HasSubstr("SPE 4 is down"));
  scenario.blade_faults[0].unit = 32;
  EXPECT_THAT(std::string(RunScenario(scenario, RunOptions()).status().message()),
              HasSubstr("SPE 32 of triblade1 does not exist; a triblade has 0 to 31"));
}

}  // namespace
}  // namespace percs
