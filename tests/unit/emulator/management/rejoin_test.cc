// Hubs that were lost get their place back within the run (docs/semantics.md rule 21). Method:
// small fabrics under open-loop traffic, hubs lost and taken back at given or drawn times; the same
// in one process, in several threads and in several processes, of which one dies and another takes
// its place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "emulator/base/random.h"
#include "emulator/scenario/link_settings.h"
#include "emulator/sim/run.h"
#include "emulator/workload/ticks.h"
#include "tests/support/executors.h"
#include "tests/support/fault_runs.h"
#include "tests/support/seed.h"
#include "tests/support/split_run.h"

namespace percs {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Two supernodes of three hubs with one D link, hub 0 - hub 3: whoever goes from one to the other
// goes through these.
constexpr NodeId kGate = 0, kOtherGate = 3;

Scenario Traffic(std::uint64_t messages, bool reliable) {
  Scenario s;
  s.seed = test::Seed();
  s.topology = {.supernodes = 2, .drawers = 1, .hubs = 3, .d_links_per_pair = 1};
  PatternWorkload work;
  work.count = messages;
  work.load = 0.05;
  work.reliable = reliable;
  s.workload = work;
  s.parameters.retransmit_timeout = 5 * kUs;
  s.parameters.retransmit_tries = 3;
  s.parameters.plan = 2 * kUs;
  return s;
}

TimedCommand Lose(Time at, std::vector<NodeId> nodes, std::uint32_t number = 1) {
  return {at, [nodes, number](Fabric& fabric, Time now) {
            const LostHubs lost{nodes, "somebody", number, now};
            for (const FaultAction& action : ActionsOf(lost, fabric.topology())) {
              if (absl::Status status = fabric.Inject(action); !status.ok()) return status;
            }
            fabric.Lose(lost);
            return absl::OkStatus();
          }};
}

// DATA_LOSS ends the run: a test that wanted it sees it fail.
TimedCommand Rejoin(Time at, std::uint32_t number = 1) {
  return {at, [number](Fabric& fabric, Time now) {
            const auto rejoined = fabric.Readmit(number, "another one", now);
            if (!rejoined.ok()) return absl::DataLossError(rejoined.status().message());
            fabric.Rejoin(*rejoined);
            return absl::OkStatus();
          }};
}

RunResult ResultOf(const Scenario& scenario, RunOptions options, int threads = 1) {
  options.threads = threads;
  options.executor = threads > 1 ? &test::kBackwards : nullptr;
  auto result = RunScenario(scenario, options);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : RunResult{};
}

TEST(Rejoin, TrafficFlowsThroughTheHubAgain) {
  constexpr Time kLost = 20 * kUs, kBack = 60 * kUs;
  const Scenario s = Traffic(400, true);
  RunOptions options;
  std::map<NodeId, Time>
      first;  // by node of supernode 1: of a packet from hub 1 or 2 that was sent after kBack
  NodeStats at_end;
  options.on_delivery = [&](NodeId node, const Delivery& delivery) {
    const bool crosses = node >= 3 && (delivery.source == 1 || delivery.source == 2);
    if (crosses && delivery.time > kBack) first.try_emplace(node, delivery.time);
  };
  options.on_result = [&](const NodeResult& node) {
    if (node.node == kGate) at_end = node.stats;
  };
  options.commands = {Lose(kLost, {kGate}), Rejoin(kBack)};
  const RunResult result = ResultOf(s, options);
  EXPECT_THAT(result.violations, IsEmpty());
  EXPECT_EQ(result.nodes, 6u) << "it counts again";
  ASSERT_EQ(result.lost.size(), 1u);
  ASSERT_EQ(result.rejoined.size(), 1u);
  EXPECT_THAT(result.rejoined[0].nodes, ElementsAre(kGate));
  EXPECT_EQ(result.rejoined[0].incarnation, 2u);
  EXPECT_EQ(result.rejoined[0].at, kBack);
  // The links came up at kBack; alert, plan and install take what the parameters say.
  ASSERT_GE(result.reroutes.size(), 2u);
  const Reroute& back = result.reroutes.back();
  EXPECT_EQ(back.raised, kBack);
  EXPECT_EQ(back.unreachable_pairs, 0u);
  EXPECT_GT(result.reroutes.front().unreachable_pairs, 0u);
  ASSERT_EQ(first.size(), 3u);
  for (const auto& [node, time] : first) {
    EXPECT_GT(time, back.committed) << "nobody has a route before";
    EXPECT_LT(time, back.committed + 20 * kUs);
  }
  EXPECT_GT(at_end.ports[kDFirst].sum().flits, 0u) << "sent on by the new hub";
  EXPECT_GT(at_end.ports[0].sum().flits, 0u);
  EXPECT_EQ(at_end.messages_sent, 0u) << "its workload does not come back";
  EXPECT_GT(at_end.messages_delivered, 0u) << "it is sent messages again";
  EXPECT_EQ(at_end.tables_installed, 1u);
  // Survivors: every message is reported.
  EXPECT_EQ(result.total.messages_acknowledged + result.total.messages_failed,
            result.total.messages_sent);
  for (const FailedMessage& failed : result.failed) EXPECT_NE(failed.source, kGate);
}

TEST(Rejoin, ThreadsAndProcessesDoNotShowInTheResult) {
  for (const bool reliable : {true, false}) {
    const Scenario s = Traffic(300, reliable);
    RunOptions options;
    options.commands = {Lose(21 * kUs, {kGate}), Rejoin(52 * kUs)};
    const RunResult one = ResultOf(s, options);
    EXPECT_THAT(one.violations, IsEmpty());
    EXPECT_EQ(one.digest, ResultOf(s, options, 3).digest);
    test::SplitOptions split;
    split.processes = 6;
    split.changes = {{21 * kUs, 0, 0}, {52 * kUs, 0, 1}};
    const auto processes = test::SplitRun(s, split);
    ASSERT_TRUE(processes.ok()) << processes.status();
    EXPECT_EQ(one.digest, processes->digest);
    RunOptions lost_only;
    lost_only.commands = {Lose(21 * kUs, {kGate})};
    EXPECT_NE(one.digest, ResultOf(s, lost_only).digest);
  }
}

// At that instant another link of its neighbour also goes down. What the neighbour drops then is of
// the hub before, and so are the credits that it returns.
TEST(Rejoin, AtTheInstantAtWhichItsNeighbourDropsItsPackets) {
  constexpr NodeId kHub = 2;
  std::uint64_t dropped = 0;
  for (int i = 0; i < 50; ++i) {
    Scenario s;
    s.topology = {.supernodes = 1, .drawers = 1, .hubs = 3};
    ScriptedWorkload script;
    for (int k = 0; k < 100; ++k) {
      for (const NodeId from : {1u, kHub}) script.packets.push_back({1'000 * kUs, from, 0});
    }
    s.workload = script;
    const Time at = 1'001 * kUs + i * kNanosecond;
    s.faults = {SetLinkDown(0, {kHub, 0}),  // so all goes through hub 1
                SetLinkDown(10 * kUs, {kHub, 1}), SetLinkUp(20 * kUs, {kHub, 1}),
                SetLinkDown(at, {1, 0})};
    RunOptions options;
    options.commands = {Lose(at, {kHub}), Rejoin(at)};
    const RunResult result = ResultOf(s, options);
    EXPECT_THAT(result.violations, IsEmpty()) << FormatTime(at);
    dropped += Dropped(result, DropReason::kLinkDown);
  }
  EXPECT_GT(dropped, 100u);
}

TEST(Rejoin, AtOnceWhileAPlanIsInFlightAndTwice) {
  const Scenario s = Traffic(300, true);
  // The loss is planned at 20 + 1 + 2 us, prepared 1 us later, committed at 3 us after that.
  for (const Time after :
       {Time{0}, 200 * kNanosecond, 1500 * kNanosecond, 3500 * kNanosecond, 5500 * kNanosecond}) {
    RunOptions options;
    options.commands = {Lose(20 * kUs, {kGate, 1}), Rejoin(20 * kUs + after),
                        Lose(50 * kUs, {kGate}, 2), Rejoin(60 * kUs, 2)};
    const RunResult result = ResultOf(s, options);
    EXPECT_THAT(result.violations, IsEmpty());
    EXPECT_EQ(result.nodes, 6u);
    ASSERT_EQ(result.rejoined.size(), 2u);
    EXPECT_EQ(result.rejoined[1].incarnation, 3u);
    ASSERT_FALSE(result.reroutes.empty());
    EXPECT_EQ(result.reroutes.back().unreachable_pairs, 0u);
    EXPECT_EQ(result.digest, ResultOf(s, options, 4).digest);
  }
}

// Both ends of the one D link, lost one after the other and taken back in both orders: the link is
// up when both are there.
TEST(Rejoin, NeighboursLostByTwoLosses) {
  const Scenario s = Traffic(300, true);
  for (const bool in_order : {true, false}) {
    RunOptions options;
    bool up_with_one = true, up_with_both = false;
    const auto look = [](Time at, bool* up) {
      return TimedCommand{
          at, [up](Fabric& fabric, Time) {
            *up = fabric.link_up({kGate, kDFirst}) && fabric.link_up({kOtherGate, kDFirst});
            return absl::OkStatus();
          }};
    };
    options.commands = {Lose(20 * kUs, {kGate}, 1),         Lose(22 * kUs, {kOtherGate}, 2),
                        Rejoin(40 * kUs, in_order ? 1 : 2), look(45 * kUs, &up_with_one),
                        Rejoin(50 * kUs, in_order ? 2 : 1), look(55 * kUs, &up_with_both)};
    const RunResult result = ResultOf(s, options);
    EXPECT_THAT(result.violations, IsEmpty());
    EXPECT_FALSE(up_with_one);
    EXPECT_TRUE(up_with_both);
    EXPECT_EQ(result.reroutes.back().unreachable_pairs, 0u);
    EXPECT_EQ(result.digest, ResultOf(s, options, 3).digest);
  }
}

// A program at hub 1 writes to hub 0 when its hub is lost; the next one there does the same, with
// the same request as far as it knows. What hub 0 has kept of the first write must not end the
// second one early.
TEST(Rejoin, AWriteOfTheNewIncarnationIsNotTakenForOneOfTheOld) {
  Scenario s = Traffic(0, true);
  s.workload = ScriptedWorkload{};
  const auto operation = [](std::uint64_t id, WindowOp op) {
    WindowOperation asked;
    asked.op = op;
    asked.id = id;
    asked.window = 3;
    asked.job = 9;
    asked.address = 0x10000;
    asked.bytes = 400'000;
    asked.node = 0;
    asked.peer_window = 3;
    asked.peer_address = 0x10000;
    return asked;
  };
  struct Heard : WindowListener {
    void OnWindowEvent(const WindowEvent& event) override {
      if (event.kind != WindowEvent::Kind::kCompletion) return;
      EXPECT_EQ(event.status, WindowStatus::kOk)
          << event.id << ": " << WindowStatusName(event.status);
      at[event.id] = event.at;
    }
    std::map<std::uint64_t, Time> at;
  } heard;
  const auto issue = [&](Time at, NodeId node, std::uint64_t id, WindowOp op) {
    return TimedCommand{at, [&heard, node, asked = operation(id, op)](Fabric& fabric, Time now) {
                          return fabric.Issue(node, now, asked, &heard);
                        }};
  };
  const auto program = [&](Time at, std::uint64_t id) {
    return std::vector<TimedCommand>{issue(at, 1, id, WindowOp::kReserve),
                                     issue(at, 1, id + 1, WindowOp::kRegister),
                                     issue(at, 1, id + 2, WindowOp::kRdmaWrite)};
  };
  RunOptions options;
  options.commands = program(0, 11);
  options.commands.insert(options.commands.begin(), {issue(0, 0, 1, WindowOp::kReserve),
                                                     issue(0, 0, 2, WindowOp::kRegister)});
  const RunResult undisturbed = ResultOf(s, options);
  const Time took = heard.at[13];
  ASSERT_GT(took, 12 * kUs);
  heard.at.clear();
  options.commands.push_back(Lose(took / 2, {1}));
  options.commands.push_back(Rejoin(2 * took));
  for (TimedCommand& command : program(3 * took, 21))
    options.commands.push_back(std::move(command));
  const RunResult result = ResultOf(s, options);
  EXPECT_THAT(result.violations, IsEmpty());
  EXPECT_FALSE(heard.at.contains(13)) << "nobody is left to hear of it";
  EXPECT_GE(heard.at[23], 4 * took) << "as long as it takes";
}

// One hub sends long messages to a hub that is lost and comes back in the middle of one: what the
// old incarnation had of it is no part of what the new one gets.
TEST(Rejoin, AMessageThatTwoIncarnationsHadAPartOfHasFailed) {
  Scenario s = Traffic(0, true);
  AllToAllWorkload work;
  work.bytes = 256 * 1024;
  s.workload = work;
  std::uint64_t acknowledged_before = 0, delivered_before = 0;
  RunOptions options;
  options.commands = {{5 * kUs,
                       [&](Fabric& fabric, Time) {
                         for (const NodeId node : fabric.local_nodes()) {
                           acknowledged_before += fabric.stats(node).messages_acknowledged;
                         }
                         delivered_before = fabric.stats(1).messages_delivered;
                         return absl::OkStatus();
                       }},
                      Lose(5 * kUs, {1}),
                      Rejoin(7 * kUs)};
  const RunResult result = ResultOf(s, options);
  EXPECT_THAT(result.violations, IsEmpty());
  EXPECT_EQ(delivered_before, 0u) << "in the middle of the first ones";
  EXPECT_EQ(acknowledged_before, 0u);
  const NodeStats& t = result.total;
  EXPECT_EQ(t.messages_acknowledged + t.messages_failed, t.messages_sent);
  EXPECT_EQ(t.messages_acknowledged, t.messages_delivered) << "none is told delivered that was not";
  EXPECT_EQ(t.messages_sent, 25u) << "of the five others, five each";
  EXPECT_GT(t.messages_failed, 0u) << "those to hub 1 that had begun";
  EXPECT_LT(t.messages_failed, 5u) << "the others began later, and reached it";
  for (const FailedMessage& failed : result.failed) {
    EXPECT_EQ(failed.destination, 1u);
    EXPECT_EQ(failed.reason, DropReason::kOldIncarnation);
    EXPECT_EQ(failed.at, 7 * kUs);
  }
  EXPECT_GT(Dropped(result, DropReason::kOldIncarnation), 0u)
      << "what was on its way to or from the old one";
}

// Everything is still when the hub is lost, so all that was ever created is known.
TEST(Rejoin, PacketsAreConserved) {
  Scenario s = Traffic(0, false);
  ScriptedWorkload work;
  for (int i = 0; i < 200; ++i) {
    for (NodeId from = 0; from < 6; ++from) {
      const NodeId to = (from + 1 + static_cast<NodeId>(i) % 5) % 6;
      const Time at = (i < 50 ? 0 : 150 * kUs) + i * 200 * kNanosecond;
      if (from != kGate || i < 50) work.packets.push_back({at, from, to, 0, 0, 1 + i * 10});
    }
  }
  s.workload = work;
  NodeStats before;
  RunOptions options;
  options.commands = {{100 * kUs,
                       [&](Fabric& fabric, Time) {
                         before = fabric.stats(kGate);
                         return absl::OkStatus();
                       }},
                      Lose(100 * kUs, {kGate}),
                      Rejoin(170 * kUs)};
  const RunResult result = ResultOf(s, options);
  EXPECT_THAT(result.violations, IsEmpty());
  NodeStats all = result.total;
  all.Add(before);
  std::uint64_t dropped = 0;
  for (const std::uint64_t packets : all.packets_dropped) dropped += packets;
  EXPECT_EQ(all.packets_created, work.packets.size());
  EXPECT_EQ(all.packets_created + all.packets_synthesised, all.packets_delivered + dropped);
  EXPECT_GT(dropped, 0u) << "some were sent while it was gone";
  EXPECT_GT(result.total.packets_delivered, 0u);
}

// What a command or a fault does to a link holds for whoever is at its end.
TEST(Rejoin, CommandsAndFaultsStillHoldForTheNewHub) {
  Scenario s = Traffic(600, true);
  s.topology.d_links_per_pair = 3;
  s.faults = {SetLinkDown(5 * kUs, {kGate, 0}), SetLinkUp(90 * kUs, {kGate, 0}),
              SetLinkDown(40 * kUs, {kGate, 1})};
  s.faults.push_back(SetLanesLost(5 * kUs, {kGate, kDFirst}, 4));
  FaultSpec cut;
  cut.id = "cut";
  cut.kind = FaultKind::kLinkDown;
  cut.at = 10 * kUs;
  cut.duration = 70 * kUs;
  cut.select.link = LinkEnd{1, 1};  // hub 1 - hub 2
  FaultSpec errors = cut;
  errors.id = "errors";
  errors.kind = FaultKind::kBitErrors;
  errors.flit_error_rate = 0.01;
  errors.select.link = LinkEnd{kGate, kDFirst};
  s.faults.insert(s.faults.end(), {cut, errors});
  std::map<std::string, bool> seen;
  const auto look = [&seen](Time at, std::string name, LinkEnd end) {
    return TimedCommand{at, [&seen, name, end](Fabric& fabric, Time) {
                          const LinkEnd far = fabric.topology().Peer(end.node, end.port);
                          EXPECT_EQ(fabric.link_up(end), fabric.link_up(far)) << name;
                          seen[name] = fabric.link_up(end);
                          return absl::OkStatus();
                        }};
  };
  RunOptions options;
  std::uint64_t lanes_lost = 0;
  options.commands = {Lose(20 * kUs, {kGate, 1}),
                      Rejoin(30 * kUs),
                      look(35 * kUs, "command", {kGate, 0}),
                      look(35 * kUs, "fault", {1, 1}),
                      look(35 * kUs, "to come", {kGate, 1}),
                      look(35 * kUs, "slow", {kGate, kDFirst}),
                      look(45 * kUs, "came", {kGate, 1}),
                      {45 * kUs,
                       [&](Fabric& fabric, Time) {
                         lanes_lost = fabric.stats(kGate).ports[kDFirst].lanes_lost;
                         return absl::OkStatus();
                       }},
                      look(85 * kUs, "fault over", {1, 1}),
                      look(95 * kUs, "command over", {kGate, 0})};
  const RunResult result = ResultOf(s, options);
  EXPECT_THAT(result.violations, IsEmpty());
  EXPECT_FALSE(seen["command"]);
  EXPECT_FALSE(seen["fault"]);
  EXPECT_TRUE(seen["to come"]);
  EXPECT_TRUE(seen["slow"]);
  EXPECT_EQ(lanes_lost, 4u);
  EXPECT_FALSE(seen["came"]);
  EXPECT_TRUE(seen["fault over"]);
  EXPECT_TRUE(seen["command over"]);
  EXPECT_GT(result.total.ports[kDFirst].replays, 0u);
  EXPECT_EQ(result.digest, ResultOf(s, options, 3).digest);
  test::SplitOptions split;
  split.process_of = [](NodeId node) { return node < 2 ? 0 : 1; };
  split.processes = 2;
  split.changes = {{20 * kUs, 0, 0}, {30 * kUs, 0, 1}};
  const auto processes = test::SplitRun(s, split);
  ASSERT_TRUE(processes.ok()) << processes.status();
  EXPECT_EQ(result.digest, processes->digest);
}

TEST(Rejoin, ItsClockIsSetAgainAndItsServiceAnswers) {
  for (const NodeId node : {NodeId{0}, NodeId{1}}) {  // 0 is where symbols come from
    Scenario s = Traffic(0, false);
    s.topology.clock = ClockSettings{.period = 10 * kUs, .drift_ppb = 50'000, .error = 2000};
    TickWorkload ticks;
    ticks.period = 500 * kUs;
    ticks.count = 1;
    s.workload = ticks;
    s.service.pings = {{4, node, 0, 8, 30 * kUs}, {node, 4, 0, 8, 30 * kUs}};
    RunOptions options;
    NodeStats of_node;
    options.on_result = [&](const NodeResult& result) {
      if (result.node == node) of_node = result.stats;
    };
    options.commands = {Lose(100 * kUs, {node}), Rejoin(155 * kUs)};
    const RunResult result = ResultOf(s, options);
    EXPECT_THAT(result.violations, IsEmpty());
    EXPECT_EQ(result.clock.synchronised, 6u);
    EXPECT_EQ(result.clock.samples, 50u);
    EXPECT_EQ(of_node.service_answers, 2u) << "those of 180 us and 210 us";
    EXPECT_EQ(result.digest, ResultOf(s, options, 3).digest);
    test::SplitOptions split;
    split.processes = 6;
    split.changes = {{100 * kUs, static_cast<int>(node), 0},
                     {155 * kUs, static_cast<int>(node), 1}};
    const auto processes = test::SplitRun(s, split);
    ASSERT_TRUE(processes.ok()) << processes.status();
    EXPECT_EQ(result.digest, processes->digest);
  }
}

TEST(Rejoin, TreesThatHadItGoOnWithoutIt) {
  Scenario s = Traffic(300, true);
  s.trees = {{"world", {0, 1, 2, 3, 4, 5}}};
  RunOptions options;
  options.commands = {Lose(20 * kUs, {4}),
                      Rejoin(40 * kUs),
                      {70 * kUs, [](Fabric& fabric, Time now) {
                         return fabric.CreateTree({"anew", {2, 4, 5}}, now).status();
                       }}};
  const RunResult result = ResultOf(s, options);
  EXPECT_THAT(result.violations, IsEmpty());
  ASSERT_EQ(result.trees.size(), 2u);
  EXPECT_EQ(result.trees[0].state, TreeState::kReady);
  EXPECT_THAT(result.trees[0].plan->Participants(), ElementsAre(0, 1, 2, 3, 5));
  EXPECT_EQ(result.trees[1].state, TreeState::kReady);
  EXPECT_THAT(result.trees[1].plan->Participants(), ElementsAre(2, 4, 5))
      << "a new one may have it";
}

TEST(Rejoin, WhatCannotBeIsRefused) {
  RunOptions options;
  options.commands = {Lose(20 * kUs, {kGate}),
                      {30 * kUs, [](Fabric& fabric, Time now) {
                         EXPECT_EQ(fabric.Readmit(2, "x", now).status().code(),
                                   absl::StatusCode::kNotFound);
                         const auto right = fabric.Readmit(1, "x", now);
                         EXPECT_TRUE(right.ok());
                         fabric.Rejoin(*right);
                         EXPECT_EQ(fabric.Readmit(1, "x", now).status().code(),
                                   absl::StatusCode::kFailedPrecondition);
                         return absl::OkStatus();
                       }}};
  EXPECT_THAT(ResultOf(Traffic(100, true), options).violations, IsEmpty());
}

// Faults of many kinds at drawn times, hubs lost and taken back among them: nothing that a checker
// sees, every message is told of, and the same in several threads and processes.
TEST(Rejoin, AmongRandomFaults) {
  PERCS_TRACE_SEED();
  RandomStream random(test::Seed(), "rejoin");
  for (int round = 0; round < 6; ++round) {
    Scenario s = Traffic(500, true);
    s.seed = test::Seed() + static_cast<std::uint64_t>(round);
    s.topology = {.supernodes = 2, .drawers = 2, .hubs = 2, .d_links_per_pair = 3};
    const FaultKind kinds[] = {FaultKind::kLinkDown,   FaultKind::kFlap,    FaultKind::kLaneLoss,
                               FaultKind::kBitErrors,  FaultKind::kLatency, FaultKind::kHubDown,
                               FaultKind::kWindowDown, FaultKind::kPortDown};
    for (const FaultKind kind : kinds) {
      FaultSpec spec;
      spec.kind = kind;
      spec.id = FaultKindName(kind);
      spec.mode = FaultMode::kFixed;
      spec.count = 2;
      spec.at = random.Below(80'000) * kNanosecond;
      spec.duration = (5 + random.Below(60)) * kUs;
      if (kind == FaultKind::kFlap) spec.period = 12 * kUs, spec.duty = 0.4;
      if (kind == FaultKind::kLaneLoss) spec.lanes = 1 + random.Below(6);
      if (kind == FaultKind::kBitErrors) spec.flit_error_rate = 0.05;
      if (kind == FaultKind::kLatency) spec.latency = (1 + random.Below(900)) * kNanosecond;
      if (kind == FaultKind::kWindowDown) spec.window = 0;
      if (kind == FaultKind::kPortDown) spec.direction = FaultDirection::kForward;
      s.faults.push_back(spec);
    }
    const NodeId hubs = 8, first = random.Below(hubs / 2) * 2;
    const Time lost = (10 + random.Below(30)) * kUs,
               back = lost + random.Below(40'000) * kNanosecond;
    const Time again = back + (5 + random.Below(20)) * kUs,
               back_again = again + random.Below(30'000) * kNanosecond;
    RunOptions options;
    options.commands = {Lose(lost, {first, first + 1}), Rejoin(back),
                        Lose(again, {first, first + 1}, 2), Rejoin(back_again, 2)};
    const RunResult result = ResultOf(s, options);
    EXPECT_THAT(result.violations, IsEmpty());
    EXPECT_EQ(result.total.messages_acknowledged + result.total.messages_failed,
              result.total.messages_sent);
    EXPECT_EQ(result.failed.size(), result.total.messages_failed);
    EXPECT_EQ(result.digest, ResultOf(s, options, 3).digest);
    test::SplitOptions split;
    split.seed = test::Seed();
    split.processes = 4;
    const int process = static_cast<int>(first / 2);
    split.changes = {
        {lost, process, 0}, {back, process, 1}, {again, process, 0}, {back_again, process, 2}};
    const auto processes = test::SplitRun(s, split);
    ASSERT_TRUE(processes.ok()) << processes.status();
    EXPECT_EQ(result.digest, processes->digest) << round;
  }
}

}  // namespace
}  // namespace percs
