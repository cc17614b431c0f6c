// The engine against the reference router on random small networks: every delivery, every counter,
// equal to the picosecond. PERCS_SEED is the seed of the first network, PERCS_NETWORKS their number
// in each test; a failure prints the command that runs its network alone, and the smallest part of
// it that still fails.
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_join.h"
#include "emulator/routing/planner.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/differential/checkers.h"
#include "tests/differential/engine_run.h"
#include "tests/differential/random_network.h"
#include "tests/support/ring.h"
#include "tests/support/seed.h"

namespace percs::reference {
namespace {

std::uint64_t FromEnvironment(const char* name, std::uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value ? std::strtoull(value, nullptr, 10) : otherwise;
}

std::string HowToReproduce(std::uint64_t network) {
  const auto* info = testing::UnitTest::GetInstance()->current_test_info();
  return fmt::format(
      "reproduce: PERCS_SEED={} PERCS_NETWORKS=1 differential_test --gtest_filter={}.{}", network,
      info->test_suite_name(), info->name());
}

// A failed check of the engine ends the process; this tells in which network.
std::uint64_t running_network = 0;
void TellNetwork(int) {
  std::fprintf(stderr, "network %s: the engine ended the process; %s\n",
               std::to_string(running_network).c_str(), HowToReproduce(running_network).c_str());
}

struct Outcome {
  std::vector<std::string> differences;  // none if both agree and every checker is content
  ReferenceResult reference;
};

std::vector<std::string> Violations(const Scenario& scenario, const Topology& topology,
                                    const ReferenceResult& result) {
  std::vector<std::vector<ReferenceGrant>> grants;
  std::vector<NodeStats> stats;
  for (const ReferenceNode& node : result.nodes) {
    grants.push_back(node.grants);
    stats.push_back(node.stats);
  }
  std::vector<std::string> all;
  for (const auto& violations :
       {CheckConservation(stats), CheckVcPositions(grants, &topology), CheckDrained(result),
        CheckFlitOrder(grants, scenario.parameters,
                       !scenario.faults.empty() || !scenario.impairments.empty())}) {
    for (const std::string& violation : violations) all.push_back("reference: " + violation);
  }
  return all;
}

Outcome RunBoth(const Scenario& scenario, bool random_tables) {
  Outcome outcome;
  const Topology topology = Topology::Create(scenario.topology).value();
  absl::StatusOr<EngineRun> engine =
      random_tables ? RunEngineWithTables(scenario, RandomTables(topology, scenario.seed))
                    : RunEngine(scenario);
  if (!engine.ok()) {
    outcome.differences = {fmt::format("engine: {}", std::string(engine.status().message()))};
    return outcome;
  }
  ReferenceInput input;
  input.topology = &topology;
  input.parameters = scenario.parameters;
  input.packets = std::get<ScriptedWorkload>(scenario.workload).packets;
  input.faults = scenario.faults;
  input.impairments = scenario.impairments;
  input.cables = scenario.cables;
  input.service = scenario.service;
  input.tables = engine->tables;
  input.seed = scenario.seed;
  input.routing = scenario.routing;
  outcome.reference = RunReference(input);
  outcome.differences = Differences(outcome.reference, engine->observed);
  for (std::string& v : Violations(scenario, topology, outcome.reference))
    outcome.differences.push_back(v);
  for (const std::string& v : engine->violations) outcome.differences.push_back("engine: " + v);
  return outcome;
}

// Leaves out packets and faults as long as the two still disagree.
Scenario Shrink(Scenario scenario, bool random_tables) {
  const auto differs = [&](const Scenario& s) {
    return !RunBoth(s, random_tables).differences.empty();
  };
  const auto shrink = [&](auto member) {
    for (std::size_t piece = std::max<std::size_t>(1, member(scenario).size() / 2); piece > 0;
         piece /= 2) {
      for (std::size_t i = 0; i + piece <= member(scenario).size();) {
        Scenario smaller = scenario;
        auto& items = member(smaller);
        items.erase(items.begin() + i, items.begin() + i + piece);
        if (differs(smaller)) {
          scenario = smaller;
        } else {
          i += piece;
        }
      }
    }
  };
  shrink([](Scenario & s) -> auto& { return std::get<ScriptedWorkload>(s.workload).packets; });
  shrink([](Scenario & s) -> auto& { return s.faults; });
  shrink([](Scenario & s) -> auto& { return s.impairments; });
  shrink([](Scenario & s) -> auto& { return s.service.pings; });
  return scenario;
}

void Campaign(bool random_tables, std::uint64_t networks, Coverage* coverage) {
  const std::uint64_t first = test::Seed();
  std::signal(SIGABRT, TellNetwork);
  for (std::uint64_t seed = first; seed < first + networks; ++seed) {
    running_network = seed;
    Scenario scenario = RandomNetwork(seed);
    if (random_tables) scenario.reroute = false;
    const Outcome outcome = RunBoth(scenario, random_tables);
    if (!outcome.differences.empty()) {
      const bool shrink = FromEnvironment("PERCS_SHRINK", 1) != 0;
      const Scenario small = shrink ? Shrink(scenario, random_tables) : scenario;
      FAIL() << "network " << seed << ": " << outcome.differences.front()
             << "\nsmallest part that differs:\n"
             << Describe(small) << "  "
             << absl::StrJoin(RunBoth(small, random_tables).differences, "\n  ") << "\n"
             << HowToReproduce(seed);
    }
    coverage->Add(outcome.reference.coverage);
  }
}

TEST(Differential, EngineAndReferenceAgreeOnRandomNetworks) {
  const std::uint64_t networks = FromEnvironment("PERCS_NETWORKS", 3000);
  Coverage coverage;
  Campaign(/*random_tables=*/false, networks, &coverage);
  if (HasFailure() || networks < 1000) return;
  std::printf("%s", coverage.ToString().c_str());  // of the whole campaign
  std::vector<std::string> missing = coverage.Missing();
  std::erase(missing, "no_vc_position");        // the planner's tables never run out of positions
  std::erase(missing, "slots_promised_twice");  // one network in ten thousand
  EXPECT_THAT(missing, testing::IsEmpty());
}

// Tables that no planner would write: detours, loops, holes, and packets that run out of positions.
TEST(Differential, EngineAndReferenceAgreeOnRandomTables) {
  const std::uint64_t networks = FromEnvironment("PERCS_NETWORKS", 1500);
  Coverage coverage;
  Campaign(/*random_tables=*/true, networks, &coverage);
  if (HasFailure() || networks < 1000) return;
  EXPECT_GT(coverage.no_vc_position, 0u);
  EXPECT_GT(coverage.no_route, 0u);
}

// A saturated link that dies and comes back, at every step of its traffic and after every pause:
// what is on the wire, announced, leaving or promised differs each time.
Scenario Flap(int buffer_flits, Time hfi_flit_time, Time down, Time pause) {
  Scenario s;
  s.name = fmt::format("flap at {} for {}", down, pause);
  s.topology = {.supernodes = 1, .drawers = 1, .hubs = 3};
  s.parameters.ll = {3000, 1000, buffer_flits};
  s.parameters.hfi.flit_time = hfi_flit_time;
  s.parameters.w_flit_time = 500;
  s.parameters.isr_latency = 2000;
  s.parameters.credit_processing = 1000;
  ScriptedWorkload script;
  for (int i = 0; i < 8; ++i) {
    script.packets.push_back({i * 1000, static_cast<NodeId>(i % 4 == 3 ? 2 : 0), 1, 0,
                              static_cast<WindowId>(i % 2), 2000});
  }
  s.workload = script;
  s.faults = {{down, {0, 0}, false}, {down + pause, {0, 0}, true}};
  s.reroute = false;
  return s;
}

TEST(Differential, EngineAndReferenceAgreeOnEveryInstantOfAFlap) {
  Coverage coverage;
  for (int buffer_flits : {3, 8, 20}) {
    for (Time hfi_flit_time : {2000, 3000, 4000}) {
      for (Time down = 40'000; down < 200'000; down += 1000) {
        for (Time pause : {1000, 5000, 20'000}) {
          const Scenario scenario = Flap(buffer_flits, hfi_flit_time, down, pause);
          const Outcome outcome = RunBoth(scenario, /*random_tables=*/false);
          ASSERT_THAT(outcome.differences, testing::IsEmpty()) << Describe(scenario);
          coverage.Add(outcome.reference.coverage);
        }
      }
    }
  }
  EXPECT_GT(coverage.slots_promised_twice, 0u);
  EXPECT_GT(coverage.credits_after_up, 0u);
  EXPECT_GT(coverage.poison_overtaken, 0u);
}

TEST(Differential, WithOneVcBothDeadlockOnARingAndWithPositionsNeitherDoes) {
  for (const VcPolicy policy : {VcPolicy::kSingle, VcPolicy::kPosition}) {
    const Scenario scenario = test::Ring(policy);
    const Topology topology = Topology::Create(scenario.topology).value();
    const TableSet tables = test::RingTables(topology);
    const absl::StatusOr<EngineRun> engine = RunEngineWithTables(scenario, tables);
    const ReferenceResult reference =
        RunReference({.topology = &topology,
                      .parameters = scenario.parameters,
                      .tables = {{0, tables}},
                      .packets = std::get<ScriptedWorkload>(scenario.workload).packets,
                      .faults = {}});
    if (policy == VcPolicy::kSingle) {
      EXPECT_EQ(reference.resident_packets, 6u);  // each in its source and in the next hub
      EXPECT_THAT(CheckDrained(reference), testing::Contains(testing::HasSubstr("deadlock")));
      EXPECT_FALSE(engine.ok());
    } else {
      ASSERT_TRUE(engine.ok()) << engine.status().ToString();
      EXPECT_THAT(CheckDrained(reference), testing::IsEmpty());
      EXPECT_THAT(Differences(reference, engine->observed), testing::IsEmpty());
    }
  }
}

}  // namespace
}  // namespace percs::reference
