// Hubs that are lost in the middle of a run (docs/semantics.md rule 21): the others go on without
// them. Method: a drawer pair in one process, hubs lost and severed by commands at given times.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "emulator/sim/run.h"
#include "tests/support/executors.h"
#include "tests/support/fault_runs.h"

namespace percs {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr NodeId kLossHubs = 6, kLost = 1;

Scenario AllToAll() {
  Scenario s;
  s.topology = {1, 2, 3, 1};
  AllToAllWorkload work;
  work.bytes = 32 * 1024;
  work.reliable = true;
  s.workload = work;
  s.parameters.retransmit_timeout = 5 * kUs;
  s.parameters.plan = 2 * kUs;
  s.trees = {{"world", {0, 1, 2, 3, 4, 5}}};
  return s;
}

TimedCommand LoseAt(Time at) {
  return {at, [](Fabric& fabric, Time now) {
            const LostHubs lost{{kLost}, "somebody", 1, now};
            for (const FaultAction& action : ActionsOf(lost, fabric.topology())) {
              if (absl::Status status = fabric.Inject(action); !status.ok()) return status;
            }
            fabric.Lose(lost);
            return absl::OkStatus();
          }};
}

RunResult ResultOf(RunOptions options, int threads = 1) {
  options.threads = threads;
  options.executor = threads > 1 ? &test::kBackwards : nullptr;
  auto result = RunScenario(AllToAll(), options);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : RunResult{};
}

TEST(Loss, TheOthersGoOnRerouteAndFinish) {
  RunOptions options;
  options.commands = {LoseAt(3 * kUs)};
  const RunResult result = ResultOf(options);
  EXPECT_EQ(result.nodes, kLossHubs - 1);
  ASSERT_EQ(result.lost.size(), 1u);
  EXPECT_THAT(result.lost[0].nodes, ElementsAre(kLost));
  EXPECT_THAT(result.violations, IsEmpty());
  EXPECT_FALSE(result.reroutes.empty());
  for (const FailedMessage& failed : result.failed) EXPECT_EQ(failed.destination, kLost);
  EXPECT_FALSE(result.failed.empty());
  ASSERT_EQ(result.trees.size(), 1u);
  EXPECT_EQ(result.trees[0].state, TreeState::kReady) << "repaired without the lost hub";
  EXPECT_THAT(result.trees[0].plan->Participants(), ElementsAre(0, 2, 3, 4, 5));
}

TEST(Loss, ShardsDoNotShowInTheResult) {
  RunOptions options;
  options.commands = {LoseAt(3 * kUs)};
  EXPECT_EQ(ResultOf(options).digest, ResultOf(options, 3).digest);
}

TEST(Loss, WhatASeveredHubSendsArrivesNowhereAndTheOthersAreNotTouched) {
  constexpr Time kSevered = 2 * kUs, kGone = 8 * kUs;
  for (const int threads : {1, 3}) {
    RunOptions options;
    std::set<std::pair<NodeId, NodeId>>
        late;  // (source, destination) of what came over the severed way
    options.on_delivery = [&](NodeId node, const Delivery& delivery) {
      if (delivery.source == kLost && delivery.time > kSevered + 3 * kUs && delivery.time < kGone)
        late.insert({kLost, node});
    };
    if (threads > 1) options.on_delivery = nullptr;
    options.commands = {{kSevered,
                         [](Fabric& fabric, Time) {
                           fabric.Sever({{kLost}, {0, 2, 3, 4, 5}, true});
                           return absl::OkStatus();
                         }},
                        LoseAt(kGone)};
    const RunResult result = ResultOf(options, threads);
    EXPECT_THAT(result.violations, IsEmpty());
    EXPECT_THAT(late, IsEmpty());
    RunOptions only_lost;
    only_lost.commands = {LoseAt(kGone)};
    EXPECT_NE(result.digest, ResultOf(only_lost).digest);
    EXPECT_EQ(result.digest, ResultOf(options, 4 - threads).digest);
  }
}

TEST(Loss, ASwappedCableThatLedToALostHubGoesBackToWhereItBelongs) {
  Scenario s;
  s.topology = {.supernodes = 2, .drawers = 1, .hubs = 3, .d_links_per_pair = 3};
  s.workload = AllToAllWorkload{64 * 1024, Schedule::kSpread, true, PayloadMode::kVerified};
  s.parameters.retransmit_timeout = 5 * kUs;
  s.parameters.plan = 2 * kUs;
  FaultSpec swap;
  swap.id = "swap";
  swap.kind = FaultKind::kMiswired;
  swap.at = 1 * kUs;
  swap.select.link = LinkEnd{0, kDFirst};
  swap.with = LinkEnd{1, kDFirst};
  s.faults = {swap};
  constexpr NodeId kFar = 4;  // where cable 0 leads to when it is swapped with that of hub 1
  Digest digest;
  for (const int threads : {1, 3}) {
    RunOptions options;
    options.threads = threads;
    options.executor = threads > 1 ? &test::kBackwards : nullptr;
    options.commands = {{4 * kUs, [](Fabric& fabric, Time now) {
                           const LostHubs lost{{kFar}, "somebody", 1, now};
                           for (const FaultAction& action : ActionsOf(lost, fabric.topology())) {
                             if (absl::Status status = fabric.Inject(action); !status.ok())
                               return status;
                           }
                           fabric.Lose(lost);
                           return fabric.faults()->Get("swap")->phase == FaultPhase::kActive
                                      ? absl::OkStatus()
                                      : absl::DataLossError("it was not there to go back");
                         }}};
    const auto result = RunScenario(s, options);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_THAT(result->violations, IsEmpty());
    ASSERT_EQ(result->faults.size(), 1u);
    EXPECT_EQ(result->faults[0].recovered_at, 4 * kUs);
    for (const FailedMessage& failed : result->failed) EXPECT_EQ(failed.destination, kFar);
    EXPECT_EQ(result->total.messages_acknowledged + result->failed.size(),
              result->total.messages_sent)
        << "nobody waits for credits of a cable that leads nowhere";
    if (threads == 1) digest = result->digest;
    EXPECT_EQ(result->digest, digest);
  }
}

TEST(Loss, TwoAtOnceAndOneWhileARerouteIsInFlight) {
  RunOptions options;
  const auto lose = [](NodeId node, std::uint32_t number, Time at) {
    return TimedCommand{at, [node, number](Fabric& fabric, Time now) {
                          const LostHubs lost{{node}, "somebody", number, now};
                          for (const FaultAction& action : ActionsOf(lost, fabric.topology())) {
                            if (absl::Status status = fabric.Inject(action); !status.ok())
                              return status;
                          }
                          fabric.Lose(lost);
                          return absl::OkStatus();
                        }};
  };
  // The first loss is planned at 3 + 1 + 2 us; prepares are then on their way to hub 4.
  options.commands = {lose(1, 1, 3 * kUs), lose(2, 2, 3 * kUs),
                      lose(4, 3, 6 * kUs + 300 * kNanosecond)};
  const RunResult result = ResultOf(options);
  EXPECT_EQ(result.nodes, 3u);
  EXPECT_GE(result.reroutes.size(), 2u)
      << "the one in flight was committed, and the last loss rerouted";
  EXPECT_EQ(result.digest, ResultOf(options, 3).digest);
}

}  // namespace
}  // namespace percs
