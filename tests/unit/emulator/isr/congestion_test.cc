// What hubs tell each other about their D links, and what adaptive routes make of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulator/scenario/link_settings.h"
#include "emulator/sim/run.h"
#include "tests/support/split_run.h"

namespace percs {
namespace {

constexpr int kIndirect = static_cast<int>(RouteMode::kHwIndirect);

RouteSetting Adaptive(AdaptiveAlgorithm algorithm, int threshold = 0) {
  RouteSetting setting;
  setting.mode = RouteMode::kAdaptive;
  setting.adaptive = algorithm;
  setting.adaptive_threshold = threshold;
  return setting;
}

// Four supernodes of four hubs with one D link per pair. Hub 0, which owns the link from supernode
// 0 to 1, fills its queue from all its HFI ports at time 0; hub 1 sends one packet there at `at`.
Scenario OneAsks(RouteSetting route, Time at) {
  Scenario scenario;
  scenario.topology = {4, 1, 4, 1};
  scenario.routing.fifo = route;
  ScriptedWorkload script;
  for (int i = 0; i < 16; ++i) {
    const WindowId window = SpreadWindow(static_cast<std::uint64_t>(i), scenario.parameters);
    script.packets.push_back({0, 0, 4, window, window, 2048, RouteSetting()});
  }
  script.packets.push_back({at, 1, 5});
  scenario.workload = script;
  return scenario;
}

bool GoesIndirect(const Scenario& scenario, const RunOptions& options = {}) {
  const auto result = RunScenario(scenario, options);
  EXPECT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->violations, testing::IsEmpty());
  EXPECT_EQ(result->total.packets_delivered, 17u);
  return result->total.packets_by_mode[kIndirect] == 1;
}

// W hands a packet over every 16 x 1,334 ps, and each is in the ISR 16 x 5,334 ps later. The link
// takes the first at once, for 204.8 ns. So the look at 100 ns finds nothing waiting, and the one
// at 200 ns packets 2 to 6, 80 flits. Its report takes 5 ns of wire and 50 ns of processing.
constexpr Time kTold = 255'000;

TEST(Congestion, ABitArrivesAWireAndACreditsTimeAfterTheLook) {
  const RouteSetting pb = Adaptive(AdaptiveAlgorithm::kPb);
  EXPECT_FALSE(GoesIndirect(OneAsks(pb, kTold - 1)));
  EXPECT_TRUE(GoesIndirect(OneAsks(pb, kTold)));
  EXPECT_FALSE(GoesIndirect(OneAsks(Adaptive(AdaptiveAlgorithm::kUgalL), kTold)));
}

TEST(Congestion, ALinkIsCongestedFromTheThresholdOn) {
  Scenario scenario = OneAsks(Adaptive(AdaptiveAlgorithm::kPb), kTold);
  scenario.parameters.congestion_threshold = 80;
  EXPECT_TRUE(GoesIndirect(scenario));
  scenario.parameters.congestion_threshold = 81;
  EXPECT_FALSE(GoesIndirect(scenario));
}

TEST(Congestion, UgalGWeighsTheFlitsThatWaitAtTheOtherHub) {
  EXPECT_TRUE(GoesIndirect(OneAsks(Adaptive(AdaptiveAlgorithm::kUgalG, 3 * 80 - 1), kTold)));
  EXPECT_FALSE(GoesIndirect(OneAsks(Adaptive(AdaptiveAlgorithm::kUgalG, 3 * 80), kTold)));
  EXPECT_FALSE(GoesIndirect(OneAsks(Adaptive(AdaptiveAlgorithm::kUgalG), kTold - 1)));
}

TEST(Congestion, WhatOneUsesNumbersForStaysABitForTheOther) {
  Scenario scenario = OneAsks(Adaptive(AdaptiveAlgorithm::kPb), kTold);
  scenario.routing.rdma = Adaptive(AdaptiveAlgorithm::kUgalG);
  scenario.parameters.congestion_threshold = 80;
  EXPECT_TRUE(GoesIndirect(scenario));
  scenario.parameters.congestion_threshold = 81;
  EXPECT_FALSE(GoesIndirect(scenario));
}

TEST(Congestion, ADrainedLinkIsToldToBeFree) {
  // 16 packets of 204.8 ns, and one look and report.
  EXPECT_FALSE(GoesIndirect(OneAsks(Adaptive(AdaptiveAlgorithm::kPb), 4 * kMicrosecond)));
}

TEST(Congestion, ReportsOutliveALinkOnlyIfTheyAreSentAgain) {
  const RouteSetting pb = Adaptive(AdaptiveAlgorithm::kPb);
  const LinkEnd link{0, 0};  // from hub 0 to hub 1
  const auto cut = [&](Time down, Time up, Time ask) {
    Scenario scenario = OneAsks(pb, ask);
    scenario.reroute = false;
    scenario.faults = {SetLinkDown(down, link), SetLinkUp(up, link)};
    return GoesIndirect(scenario);
  };
  // On its way when the link goes down; told again 55 ns after the link has come up.
  EXPECT_FALSE(cut(230'000, 260'000, 314'999));
  EXPECT_TRUE(cut(230'000, 260'000, 315'000));
}

// Reset between the look at 200 ns and its report: the next look tells it as something new.
TEST(Congestion, AResetForgetsWhatIsOnItsWay) {
  RunOptions options;
  options.commands = {{210'000, [](Fabric& fabric, Time at) {
                         fabric.faults()->ResetArbiters(at);
                         return absl::OkStatus();
                       }}};
  const auto indirect = [&](Time ask) {
    return GoesIndirect(OneAsks(Adaptive(AdaptiveAlgorithm::kPb), ask), options);
  };
  EXPECT_FALSE(indirect(kTold));
  EXPECT_FALSE(indirect(kTold + 99'999));
  EXPECT_TRUE(indirect(kTold + 100'000));
}

TEST(Congestion, ReportsEndNoLaterThanTheRun) {
  const auto told = RunScenario(OneAsks(Adaptive(AdaptiveAlgorithm::kPb), 0), {});
  const auto untold = RunScenario(OneAsks(Adaptive(AdaptiveAlgorithm::kUgalL), 0), {});
  ASSERT_TRUE(told.ok() && untold.ok());
  EXPECT_EQ(told->virtual_time, untold->virtual_time);
  EXPECT_EQ(told->digest, untold->digest) << "the packet left before any report";
}

TEST(Congestion, APacketsOwnAlgorithmNeedsHubsThatTell) {
  Scenario scenario = OneAsks(RouteSetting(), 0);
  std::get<ScriptedWorkload>(scenario.workload).packets[0].route = Adaptive(AdaptiveAlgorithm::kPb);
  const auto refused = RunScenario(scenario, {});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.status().message()),
              testing::HasSubstr("routing: {fifo: {mode: adaptive, adaptive: pb}}"));
  scenario.routing.rdma = Adaptive(AdaptiveAlgorithm::kPb);
  EXPECT_TRUE(RunScenario(scenario, {}).ok());
}

// Four supernodes of two hubs: hub 0 has the links to supernodes 1 and 3. It fills its queue for
// supernode 1 at time 0, and `others` packets for supernode 3; hub 1 sends one packet to supernode
// 1 before it is told of that.
Scenario PassesAFullQueue(AdaptiveAlgorithm algorithm, int others = 0) {
  Scenario scenario = OneAsks(Adaptive(algorithm), 200'000);
  scenario.topology = {4, 1, 2, 1};
  auto& packets = std::get<ScriptedWorkload>(scenario.workload).packets;
  for (ScriptedPacket& packet : packets) packet.destination = packet.source == 0 ? 2 : 3;
  for (int i = 0; i < others; ++i) {
    packets.push_back(packets[static_cast<std::size_t>(i)]);
    packets.back().destination = 6;
  }
  return scenario;
}

std::uint64_t Diverted(const Scenario& scenario, std::uint64_t lost = 0) {
  const auto result = RunScenario(scenario, {});
  EXPECT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->violations, testing::IsEmpty());
  EXPECT_EQ(result->total.packets_delivered, result->total.packets_created - lost);
  EXPECT_EQ(result->total.packets_by_mode[kIndirect], 0u) << "the source chose direct";
  return result->total.packets_diverted;
}

TEST(Congestion, ALinkIsCongestedOnlyBesideEmptierOnes) {
  const auto indirect = [](int others) {
    Scenario scenario = PassesAFullQueue(AdaptiveAlgorithm::kPb, others);
    scenario.parameters.congestion_threshold = 48;
    std::get<ScriptedWorkload>(scenario.workload).packets[16].at = kTold + 100'000;
    const auto result = RunScenario(scenario, {});
    EXPECT_TRUE(result.ok()) << result.status();
    return result->total.packets_by_mode[kIndirect];
  };
  EXPECT_EQ(indirect(0), 1u);
  EXPECT_EQ(indirect(16), 0u) << "both links of the hub have long queues";
}

TEST(Congestion, APacketDoesNotGoOverTwoCongestedLinks) {
  const auto indirect = [](NodeId others) {
    Scenario scenario = OneAsks(Adaptive(AdaptiveAlgorithm::kPb), kTold);
    scenario.topology = {4, 1, 2, 1};
    auto& packets = std::get<ScriptedWorkload>(scenario.workload).packets;
    for (ScriptedPacket& packet : packets) packet.destination = packet.source == 0 ? 2 : 3;
    // Hub 1 has the link to supernode 2, over which an indirect packet would go.
    for (int i = 0; i < 16; ++i) {
      packets.push_back(packets[static_cast<std::size_t>(i)]);
      packets.back().source = 1;
      packets.back().destination = others;
    }
    const auto result = RunScenario(scenario, {});
    EXPECT_TRUE(result.ok()) << result.status();
    return result->total.packets_by_mode[kIndirect];
  };
  EXPECT_EQ(indirect(4), 0u) << "the link to supernode 2 is congested, too";
  EXPECT_EQ(indirect(0), 1u);
}

TEST(Congestion, InTransitADirectPacketLeavesALongQueueForAShortOne) {
  EXPECT_EQ(Diverted(PassesAFullQueue(AdaptiveAlgorithm::kInTransit)), 1u);
  EXPECT_EQ(Diverted(PassesAFullQueue(AdaptiveAlgorithm::kPb)), 0u);
  EXPECT_EQ(Diverted(PassesAFullQueue(AdaptiveAlgorithm::kInTransit, 16)), 0u) << "as long";
  Scenario patient = PassesAFullQueue(AdaptiveAlgorithm::kInTransit);
  patient.parameters.congestion_threshold = 1000;
  EXPECT_EQ(Diverted(patient), 0u);
}

TEST(Congestion, InTransitADirectPacketGoesRoundALinkThatIsDown) {
  const auto cut = [](AdaptiveAlgorithm algorithm) {
    Scenario scenario = PassesAFullQueue(algorithm);
    auto& packets = std::get<ScriptedWorkload>(scenario.workload).packets;
    packets.erase(packets.begin(), packets.begin() + 16);
    scenario.reroute = false;
    scenario.faults = {SetLinkDown(100'000, {0, kDFirst})};
    return scenario;
  };
  EXPECT_EQ(Diverted(cut(AdaptiveAlgorithm::kInTransit)), 1u);
  EXPECT_EQ(Diverted(cut(AdaptiveAlgorithm::kPb), 1), 0u);
}

TEST(Congestion, APacketIsDivertedInOtherProcessesToo) {
  Scenario scenario = PassesAFullQueue(AdaptiveAlgorithm::kInTransit);
  const auto whole = RunScenario(scenario, {});
  const auto split = test::SplitRun(scenario, test::Processes(3));
  ASSERT_TRUE(whole.ok() && split.ok());
  EXPECT_EQ(whole->digest, split->digest);
}

// Every packet of a listed network is on detours, from its source on.
TEST(Congestion, ADetourHasAChannelOfItsOwnUnlessThereIsOnlyOne) {
  const auto flits_on = [](VcPolicy policy, VcId vc) {
    Scenario scenario;
    const GraphSpec graph{.kind = GraphSpec::Kind::kListed,
                          .names = {"a", "b", "c"},
                          .links = {{0, 1, LinkClass::kLl}, {1, 2, LinkClass::kLl}}};
    EXPECT_TRUE(scenario.topology.UseGraph(graph).ok());
    scenario.parameters.vc_policy = policy;
    scenario.workload = ScriptedWorkload{.packets = {{0, 0, 2}}};
    const auto result = RunScenario(scenario, {});
    EXPECT_TRUE(result.ok()) << result.status();
    return result->total.ports[kLlFirst].vc[vc].flits +
           result->total.ports[kLlFirst + 1].vc[vc].flits;
  };
  EXPECT_EQ(flits_on(VcPolicy::kPosition, SwitchGraph::kDetourVc), 2u * 16);
  EXPECT_EQ(flits_on(VcPolicy::kPosition, 0), 0u);
  EXPECT_EQ(flits_on(VcPolicy::kSingle, 0), 2u * 16);
  EXPECT_EQ(flits_on(VcPolicy::kSingle, SwitchGraph::kDetourVc), 0u);
}

// Sixteen hubs of each supernode send to one other supernode, over one D link of 10 GB/s.
Scenario Adversarial(RouteSetting route, double gb_per_hub) {
  Scenario scenario;
  scenario.topology = {4, 2, 8, 1};
  route.selection = MiddleSelection::kRandom;
  scenario.routing.fifo = route;
  PatternWorkload pattern;
  pattern.pattern = Pattern::kAdversarial;
  pattern.load = gb_per_hub / 96;
  pattern.warm_up = 20 * kMicrosecond;
  pattern.measure = 40 * kMicrosecond;
  scenario.stop_at = 60 * kMicrosecond;
  scenario.workload = pattern;
  return scenario;
}

double Accepted(const Scenario& scenario) {
  const auto result = RunScenario(scenario, {});
  EXPECT_TRUE(result.ok()) << result.status();
  return static_cast<double>(result->total.measured_bytes_accepted) /
         static_cast<double>(result->total.measured_bytes_offered);
}

// Above what the direct link takes, 0.625 GB/s per hub, and below what both kinds of routes take
// together: there the source's own queues are empty, and only the others know.
TEST(Congestion, OnlyWhatOthersTellShowsALinkThatIsNotTheSourcesOwn) {
  RouteSetting direct;
  const double shared = Accepted(Adversarial(direct, 0.9));
  EXPECT_NEAR(shared, 0.625 / 0.9, 0.03);
  EXPECT_LT(Accepted(Adversarial(Adaptive(AdaptiveAlgorithm::kUgalL), 0.9)), 0.9);
  EXPECT_GT(Accepted(Adversarial(Adaptive(AdaptiveAlgorithm::kPb), 0.9)), 0.97);
  EXPECT_GT(Accepted(Adversarial(Adaptive(AdaptiveAlgorithm::kUgalG), 0.9)), 0.97);
}

// Likewise, but each hub sends 20 packets.
Scenario TwentyEach(AdaptiveAlgorithm algorithm) {
  Scenario scenario = Adversarial(Adaptive(algorithm), 0.9);
  auto& pattern = std::get<PatternWorkload>(scenario.workload);
  pattern.measure = pattern.warm_up = 0;
  pattern.count = 20;
  scenario.stop_at = 0;
  return scenario;
}

TEST(Congestion, AWorkloadOnceMoreIsThatOfAFreshFabricWhenArbitersAreReset) {
  const Scenario scenario = TwentyEach(AdaptiveAlgorithm::kPb);
  RunOptions again;
  again.again = RunOptions::Again::kWithArbitersReset;
  const auto first = RunScenario(scenario, {}), second = RunScenario(scenario, again);
  ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
  EXPECT_NE(second->workload_started % scenario.parameters.congestion_period, 0)
      << "looks are reckoned from there";
  EXPECT_EQ(first->workload, second->workload);
}

TEST(Congestion, ProcessesAgreeWithOne) {
  for (const AdaptiveAlgorithm algorithm : {AdaptiveAlgorithm::kPb, AdaptiveAlgorithm::kUgalG}) {
    const Scenario scenario = TwentyEach(algorithm);
    const auto one = RunScenario(scenario, {});
    ASSERT_TRUE(one.ok()) << one.status();
    for (const int processes : {2, 3}) {
      const auto split = test::SplitRun(scenario, test::Processes(processes));
      ASSERT_TRUE(split.ok()) << split.status();
      EXPECT_EQ(split->digest, one->digest) << AdaptiveName(algorithm) << processes;
    }
  }
}

}  // namespace
}  // namespace percs
