// Faults that are neither of a whole link nor of its errors: latency, CAUs, windows, clocks,
// cables. What each does, that it does so no longer when it is over, and that every placement tells
// the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulator/scenario/link_settings.h"
#include "emulator/sim/run.h"
#include "tests/support/executors.h"
#include "tests/support/fault_runs.h"
#include "tests/support/split_run.h"

namespace percs {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int kKindPackets = 200;

FaultSpec Fault(FaultKind kind, Time at = 20 * kUs, Time duration = 40 * kUs) {
  FaultSpec fault;
  fault.id = "fault";
  fault.kind = kind;
  fault.at = at + 1;
  fault.duration = duration;
  return fault;
}

// Hub 0 sends to hub 1 every microsecond; two drawers of two hubs.
Scenario SteadyWith(const FaultSpec& fault) {
  Scenario s;
  s.topology = {1, 2, 2, 1};
  ScriptedWorkload script;
  for (int i = 0; i < kKindPackets; ++i) script.packets.push_back({i * kUs, 0, 1});
  s.workload = script;
  s.faults = {fault};
  return s;
}

// Every hub sends every other one a message of 64 KiB.
Scenario Messages(const FaultSpec& fault, std::uint64_t bytes = 65536) {
  Scenario s;
  s.topology = {1, 1, 4, 1};
  s.workload = AllToAllWorkload{bytes, Schedule::kSpread, true, PayloadMode::kVerified};
  s.faults = {fault};
  return s;
}

// In one thread, in two, and over three processes.
RunResult Checked(const Scenario& scenario) {
  auto result = RunScenario(scenario, {});
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return {};
  EXPECT_THAT(result->violations, IsEmpty());
  RunOptions two;
  two.threads = 2;
  two.executor = &test::kThreads;
  const auto threads = RunScenario(scenario, two);
  EXPECT_TRUE(threads.ok()) << threads.status();
  if (threads.ok()) {
    EXPECT_EQ(threads->digest, result->digest);
  }
  test::SplitOptions split;
  split.processes = 3;
  const auto processes = test::SplitRun(scenario, split);
  EXPECT_TRUE(processes.ok()) << processes.status();
  if (processes.ok()) {
    EXPECT_EQ(processes->digest, result->digest);
  }
  return *std::move(result);
}

std::string WhyNot(const FaultSpec& fault, const Scenario& base) {
  Scenario s = base;
  s.faults = {fault};
  const auto result = RunScenario(s, {});
  EXPECT_FALSE(result.ok());
  return std::string(result.status().message());
}

TEST(FaultKinds, LatencyDelaysWhatOneDirectionCarriesByJustSoMuch) {
  FaultSpec fault = Fault(FaultKind::kLatency);
  fault.select.link = LinkEnd{0, 0};
  fault.direction = FaultDirection::kForward;
  fault.latency = 700'000;
  const RunResult slow = Checked(SteadyWith(fault));
  Scenario clean = SteadyWith(fault);
  clean.faults.clear();
  const RunResult fast = Checked(clean);
  EXPECT_EQ(slow.total.packets_delivered, static_cast<std::uint64_t>(kKindPackets));
  EXPECT_EQ(slow.total.packet_latency.max, fast.total.packet_latency.max + 700'000);
  EXPECT_EQ(slow.total.packet_latency.sum, fast.total.packet_latency.sum + 40 * 700'000ull)
      << "of 40 packets";
  fault.direction = FaultDirection::kBackward;
  EXPECT_EQ(Checked(SteadyWith(fault)).total.packet_latency.max, fast.total.packet_latency.max)
      << "only credits go there";
}

TEST(FaultKinds, WhenLatencyEndsNothingOvertakesWhatIsUnderWay) {
  FaultSpec fault = Fault(FaultKind::kLatency);
  fault.select.link = LinkEnd{0, 0};
  fault.latency = 30 * kUs;
  fault.period = 7 * kUs;
  fault.duration = 100 * kUs;
  Scenario s = Messages(fault);
  s.workload = AllToAllWorkload{512 * 1024, Schedule::kSpread, false, PayloadMode::kVerified};
  const RunResult result = Checked(s);
  EXPECT_EQ(result.total.packets_delivered, result.total.packets_created);
  EXPECT_GT(result.faults[0].recoveries, 5u);
}

Scenario TreeOfSix(const FaultSpec& fault) {
  Scenario s;
  s.topology = {1, 1, 6, 1};
  s.parameters.retransmit_timeout = 5 * kUs;
  s.parameters.retransmit_tries = 5;
  s.trees = {{.name = "t", .members = {0, 1, 2, 3, 4, 5}, .fan_out = 8}};
  CauWorkload loop;
  loop.iterations = 100;
  s.workload = loop;
  s.faults = {fault};
  return s;
}

TEST(FaultKinds, ACauThatIsDownForAWhileIsAskedAgain) {
  FaultSpec fault = Fault(FaultKind::kCauDown, 20 * kUs, 30 * kUs);
  fault.select.in = {3};
  RunResult result = Checked(TreeOfSix(fault));
  EXPECT_GT(Dropped(result, DropReason::kCauDown), 0u);
  EXPECT_GT(result.total.Cau(CauCounter::kPacketsResent), 0u);
  EXPECT_THAT(result.trees[0].repairs, IsEmpty());
  for (const CauTaskResult& task : result.cau_tasks) {
    EXPECT_EQ(task.problem, "") << task.node;
    EXPECT_EQ(task.steps_wrong + task.steps_failed, 0u) << task.node;
  }
}

TEST(FaultKinds, TheOperationsOfATreeWhoseCauStaysDownFailWithAReasonAndNobodyHangs) {
  FaultSpec fault = Fault(FaultKind::kCauDown, 20 * kUs, 0);
  fault.select.in = {3};
  const RunResult result = Checked(TreeOfSix(fault));
  EXPECT_GT(Dropped(result, DropReason::kCauDown), 0u);
  ASSERT_THAT(result.trees, SizeIs(1));
  ASSERT_FALSE(result.trees[0].repairs.empty());
  EXPECT_EQ(result.trees[0].repairs[0].problem.code, TreeProblem::Code::kUnacknowledged);
  ASSERT_THAT(result.cau_tasks, SizeIs(6));
  for (const CauTaskResult& task : result.cau_tasks) {
    EXPECT_EQ(task.steps_wrong, 0u);
    EXPECT_GT(task.steps_right, 0u);
    EXPECT_NE(task.reason, "") << task.node;
  }
}

TEST(FaultKinds, MessagesToAnHfiThatIsDownForAWhileAreSentAgain) {
  FaultSpec fault = Fault(FaultKind::kHfiDown, kUs, 100 * kUs);
  fault.select.in = {2};
  fault.hfi = 0;
  const RunResult result = Checked(Messages(fault));
  EXPECT_GT(Dropped(result, DropReason::kWindowDown), 0u);
  EXPECT_GT(result.total.packets_resent, 0u);
  EXPECT_EQ(result.total.messages_delivered, 12u);
  EXPECT_EQ(result.total.messages_failed, 0u);
}

TEST(FaultKinds, AMessageWhoseWindowComesBackAfterItsLastTryHasFailedForTheWindow) {
  FaultSpec fault = Fault(FaultKind::kWindowDown, 0, 200 * kUs);
  fault.select.in = {2};
  fault.window = SpreadWindow(1, P7ihParameters());
  Scenario s = Messages(fault);
  s.parameters.retransmit_tries = 2;  // 50 us and 150 us after the first, and given up at 350 us
  const RunResult result = Checked(s);
  std::map<NodeId, DropReason> reasons;
  for (const FailedMessage& message : result.failed) {
    EXPECT_GT(message.at, *fault.at + fault.duration);
    reasons[message.source] = message.reason;
  }
  EXPECT_EQ(reasons[2], DropReason::kWindowDown);
}

TEST(FaultKinds, MessagesOfAWindowThatStaysDownFailWithTheirReason) {
  FaultSpec fault = Fault(FaultKind::kWindowDown, 0, 0);
  fault.select.in = {2};
  fault.window = SpreadWindow(1, P7ihParameters());  // between hubs 2 and 1, both ways
  const RunResult result = Checked(Messages(fault));
  EXPECT_EQ(result.total.messages_failed, 2u);
  EXPECT_EQ(result.total.messages_delivered, 11u)
      << "what it gave to the HFI before is there; only nobody hears of it";
  std::map<NodeId, DropReason> reasons;
  for (const FailedMessage& message : result.failed) reasons[message.source] = message.reason;
  EXPECT_EQ(reasons[2], DropReason::kWindowDown) << "the sender knows its own window";
  EXPECT_EQ(reasons[1], DropReason::kUnacknowledged)
      << "of the other end it knows that nothing comes back";
}

// Two hubs send each other seven messages at once, from one window after the other. Windows of hub
// 0 that are down leave gaps in the flow from hub 1, of which it has to hear although nothing new
// follows.
Scenario Gaps(const std::vector<int>& down) {
  Scenario s;
  s.topology = {1, 1, 2, 1};
  s.workload = PatternWorkload{.message_bytes = 3000,
                               .count = 7,
                               .load = 0,
                               .reliable = true,
                               .payload = PayloadMode::kVerified};
  s.parameters.retransmit_tries = 2;
  for (const int window : down) {
    FaultSpec fault = Fault(FaultKind::kWindowDown, 0, 0);
    fault.id += std::to_string(window);
    fault.select.in = {0};
    fault.window = SpreadWindow(window, s.parameters);
    fault.at = 0;
    s.faults.push_back(fault);
  }
  return s;
}

// From the first time that a packet is sent until it is given up: 50 us, 100 us and 200 us.
constexpr Time kGivenUpAfter = 350 * kUs;

TEST(FaultKinds, MessagesBehindThoseGivenUpAreDelivered) {
  for (const std::vector<int>& down : {std::vector{1}, {0, 2}, {1, 2, 3}}) {
    const RunResult result = Checked(Gaps(down));
    EXPECT_EQ(result.total.messages_failed, down.size())
        << "what hub 0 sends has left it, and later answers are for all";
    EXPECT_EQ(result.total.messages_acknowledged, 14 - down.size());
    EXPECT_EQ(result.total.messages_delivered, 14 - down.size());
    EXPECT_LT(result.virtual_time, kGivenUpAfter + 10 * kUs);
  }
}

TEST(FaultKinds, MessagesBehindThoseGivenUpFailTogetherIfTheWayIsGone) {
  Scenario s = Gaps({1});
  FaultSpec cut = Fault(FaultKind::kLinkDown, 200 * kUs, 0);
  cut.select.in = {0};
  s.faults.push_back(cut);
  const RunResult result = Checked(s);
  EXPECT_EQ(result.total.messages_failed, 6u) << "all but the first from hub 1";
  EXPECT_EQ(result.total.messages_delivered, 8u);
  EXPECT_GT(result.virtual_time, 2 * kGivenUpAfter);
  EXPECT_LT(result.virtual_time, 2 * kGivenUpAfter + 100 * kUs) << "each by its own timer";
}

TEST(FaultKinds, AClockThatDriftsLeavesTheOthersUntilItIsSetAfterwards) {
  FaultSpec fault = Fault(FaultKind::kClockDrift, 150 * kUs, 300 * kUs);
  fault.select.in = {3};
  fault.drift_ppb = 10'000'000;  // a hundredth: 1 us in every period
  Scenario s = SteadyWith(fault);
  s.topology.clock = ClockSettings();
  for (int i = 0; i < 10; ++i)
    std::get<ScriptedWorkload>(s.workload).packets.push_back({i * 100 * kUs, 0, 1});
  const RunResult drifts = Checked(s);
  EXPECT_GT(drifts.clock.skew_max_ever, 900'000);
  EXPECT_LE(drifts.clock.skew_max, drifts.clock.bound) << "of those that nobody tampers with";
  EXPECT_EQ(drifts.clock.synchronised, 4u) << "again";
  s.faults.clear();
  EXPECT_LT(Checked(s).clock.skew_max_ever, 50'000);
}

// Three supernodes of two hubs: hub 0 has the cable to supernode 1, hub 1 that to supernode 2.
Scenario Cables(const FaultSpec& fault) {
  Scenario s;
  s.topology = {3, 1, 2, 1};
  ScriptedWorkload script;
  for (int i = 0; i < 4 * kKindPackets; ++i) {
    script.packets.push_back({i * kUs, 0, 2});
    script.packets.push_back({i * kUs, 1, 5});
  }
  s.workload = script;
  s.service.probe_rounds = 40;
  s.service.probe_period = 20 * kUs;
  s.faults = {fault};
  return s;
}

FaultSpec Swap() {
  FaultSpec fault = Fault(FaultKind::kMiswired, 100 * kUs, 300 * kUs);
  fault.select.link_class = LinkClass::kD;
  fault.select.in = {0, 1};
  fault.mode = FaultMode::kFixed;
  fault.count = 2;
  return fault;
}

TEST(FaultKinds, SwappedCablesAreFoundByProbesAndRoutedAroundUntilTheyAreRight) {
  const Scenario s = Cables(Swap());
  const auto result = RunScenario(s, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->violations, IsEmpty());
  EXPECT_GT(result->total.service_wrong_partner, 0u);
  ASSERT_THAT(result->reroutes, SizeIs(2));
  EXPECT_THAT(result->reroutes[0].down, SizeIs(2));
  EXPECT_THAT(result->reroutes[1].up, SizeIs(2));
  EXPECT_GT(result->reroutes[0].hubs_changed, 0u);
  EXPECT_EQ(result->reroutes[1].unreachable_pairs, 0u);
  std::vector<std::string> told;
  for (const FabricEvent& event : result->events) {
    if (event.kind == "miswired") told.push_back(event.text);
  }
  ASSERT_THAT(told, SizeIs(1));
  const Topology topology = *Topology::Create(s.topology);
  for (const LinkEnd& link : result->faults[0].targets.links) {
    EXPECT_THAT(told[0], HasSubstr(topology.LinkName(link)));
    EXPECT_THAT(told[0], HasSubstr(topology.LinkName(topology.Peer(link.node, link.port))));
  }
  EXPECT_THAT(told[0], HasSubstr("is wired to"));
  // Nothing but what was on the two wires when they were pulled, and what had no way left, is lost.
  EXPECT_LE(Dropped(*result, DropReason::kLinkDown), 8u);
  Checked(s);
}

TEST(FaultKinds, WithoutProbesNobodyNoticesSwappedCables) {
  Scenario s = Cables(Swap());
  s.service.probe_rounds = 0;
  const RunResult result = Checked(s);
  EXPECT_THAT(result.reroutes, IsEmpty());
  EXPECT_EQ(result.total.alerts_raised, 0u);
}

TEST(FaultKinds, SwappedCablesGoDownAndComeBackTogether) {
  Scenario s = Cables(Swap());
  const Topology topology = *Topology::Create(s.topology);
  const auto targets = SelectTargets(s.faults[0], topology, FaultSeed(s.faults[0], s.seed));
  ASSERT_TRUE(targets.ok());
  EXPECT_EQ(Checked(s).reroutes.back().unreachable_pairs, 0u);
  // What is set for a link acts on no swapped cable.
  s.faults.push_back(SetLinkDown(50 * kUs, targets->links[0]));
  EXPECT_EQ(RunScenario(s, {}).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(FaultKinds, WhatCannotBeIsRefusedWithTheReason) {
  const Scenario s = SteadyWith({});
  FaultSpec latency = Fault(FaultKind::kLatency);
  EXPECT_THAT(WhyNot(latency, s), HasSubstr("latency is missing"));
  latency.latency = kLatencyMax + 1;
  EXPECT_THAT(WhyNot(latency, s), HasSubstr("at most 1"));
  FaultSpec hfi = Fault(FaultKind::kHfiDown);
  hfi.hfi = 2;
  EXPECT_THAT(WhyNot(hfi, s), HasSubstr("there is no HFI 2; a hub has 0..1"));
  FaultSpec window = Fault(FaultKind::kWindowDown);
  window.window = 512;
  EXPECT_THAT(WhyNot(window, s), HasSubstr("there is no window 512; a hub has 0..511"));
  FaultSpec pcie = Fault(FaultKind::kPcieUnplugged);
  EXPECT_THAT(WhyNot(pcie, s), HasSubstr("pcie_port is missing"));
  pcie.pcie_port = 3;
  EXPECT_THAT(WhyNot(pcie, s), HasSubstr("there is no PCI Express port 3; a hub has 0..2"));
  pcie.pcie_port = 1;
  EXPECT_THAT(WhyNot(pcie, s), HasSubstr("its selector matches no hub"));
  pcie.select.in = {0};
  EXPECT_THAT(WhyNot(pcie, s),
              HasSubstr("has no device in PCI Express port 1; add one under `pcie`"));
  FaultSpec clock = Fault(FaultKind::kClockDrift);
  clock.drift_ppb = 1;
  EXPECT_THAT(WhyNot(clock, s), HasSubstr("this machine distributes no clock"));
  FaultSpec cables = Fault(FaultKind::kMiswired);
  cables.select.link = LinkEnd{0, 0};
  cables.with = LinkEnd{0, 0};
  EXPECT_THAT(WhyNot(cables, s), HasSubstr("no D cable between two hubs"));
  FaultSpec many = Swap();
  many.mode = FaultMode::kAll;
  many.select.in.clear();
  EXPECT_THAT(WhyNot(many, Cables(many)), HasSubstr("miswired swaps two cables, but this selects"));
  FaultSpec again = Swap();
  again.period = 10 * kUs;
  EXPECT_THAT(WhyNot(again, Cables(again)), HasSubstr("miswired cannot be periodic"));
}

TEST(FaultKinds, OtherFaultsOnASwappedCableAreRefusedAndTheNextOneIsNot) {
  const Topology topology = *Topology::Create({3, 1, 2, 1});
  const P7ihParameters parameters;
  FaultService faults(topology, parameters, 1, 0, 55 * kNanosecond, nullptr);
  FaultSpec swap = Swap();
  swap.duration = 0;
  const auto created = faults.Create(swap, 0);
  ASSERT_TRUE(created.ok()) << created.status();
  FaultSpec down = Fault(FaultKind::kLinkDown);
  down.id = "down";
  down.select.link = created->targets.links[1];
  const auto refused = faults.Create(down, 0);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("conflicts with fault fault (miswired, scheduled)"));
  down.select.link.reset();
  down.select.link_class = LinkClass::kLl;
  EXPECT_TRUE(faults.Create(down, 0).ok()) << "elsewhere";
  ASSERT_TRUE(faults.Delete("fault", 0).ok());
  FaultSpec later = down;
  later.id = "later";
  later.select.link_class.reset();
  later.select.link = created->targets.links[1];
  EXPECT_TRUE(faults.Create(later, 0).ok()) << "when the cables are right";
  EXPECT_EQ(faults.Create(swap, 0).status().code(), absl::StatusCode::kFailedPrecondition)
      << "and the other way round";
}

}  // namespace
}  // namespace percs
