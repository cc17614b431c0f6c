// A seeded campaign: faults of every kind, at random places and times, several at once, under
// reliable traffic on a supernode. Whatever breaks, nothing is delivered twice or lost in silence,
// and everything heals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "emulator/base/random.h"
#include "emulator/sim/run.h"
#include "tests/support/seed.h"

namespace percs {
namespace {

constexpr int kOfEachKind = 4;
constexpr Time kLast = 100 * kMicrosecond;

FaultSpec RandomFault(FaultKind kind, int number, const Topology& topology, RandomStream& random) {
  FaultSpec spec;
  spec.kind = kind;
  spec.id = std::string(FaultKindName(kind)) + "-" + std::to_string(number);
  spec.mode = FaultMode::kFixed;
  spec.count = 1 + static_cast<int>(random.Below(3));
  spec.at = random.Below(static_cast<std::uint32_t>(kLast / kNanosecond)) * kNanosecond;
  spec.duration = (5 + random.Below(80)) * kMicrosecond;
  if (kind == FaultKind::kFlap || random.Below(3) == 0) {
    spec.period = (6 + random.Below(20)) * kMicrosecond;
    spec.duty = 0.1 + 0.8 * random.Unit();
    if (spec.duty >= 0.9) spec.duty = 0.5;
  }
  if (random.Below(2) == 0 && !IsOfHubs(kind))
    spec.select.link_class = random.Below(2) == 0 ? LinkClass::kLl : LinkClass::kLr;
  const bool one_way = kind == FaultKind::kPortDown;
  if (one_way)
    spec.direction = random.Below(2) == 0 ? FaultDirection::kForward : FaultDirection::kBackward;
  if (kind == FaultKind::kLaneLoss) spec.lanes = 1 + random.Below(6);
  if (kind == FaultKind::kBitErrors) spec.flit_error_rate = 0.001 + 0.2 * random.Unit();
  if (kind == FaultKind::kCorruptNext) spec.corrupt = 1 + random.Below(40);
  if (kind == FaultKind::kLatency) spec.latency = (1 + random.Below(5'000)) * kNanosecond;
  if (kind == FaultKind::kHfiDown) spec.hfi = static_cast<int>(random.Below(2));
  if (kind == FaultKind::kWindowDown) spec.window = static_cast<int>(random.Below(4));
  if (kind == FaultKind::kPcieUnplugged) spec.pcie_port = static_cast<int>(random.Below(3));
  if (kind == FaultKind::kClockDrift) spec.drift_ppb = 1 + random.Below(1'000'000);
  if (kind == FaultKind::kTableDamage) spec.destination = random.Below(topology.hubs());
  if (kind == FaultKind::kPartition) {
    spec.select.in = {random.Below(topology.hubs() / 2),
                      topology.hubs() / 2 + random.Below(topology.hubs() / 2)};
    spec.select.link_class = std::nullopt;
    spec.mode = FaultMode::kAll;
    spec.duration = 5 * kMicrosecond;
  }
  return spec;
}

// Links that network management last heard were down.
std::set<std::pair<NodeId, PortId>> LeftDown(const std::vector<Reroute>& reroutes) {
  std::set<std::pair<NodeId, PortId>> down;
  for (const Reroute& reroute : reroutes) {
    for (const LinkEnd& link : reroute.down) down.insert({link.node, link.port});
    for (const LinkEnd& link : reroute.up) down.erase({link.node, link.port});
  }
  return down;
}

TEST(FaultCampaign, NothingIsLostInSilenceAndEverythingHeals) {
  PERCS_TRACE_SEED();
  RandomStream random(test::Seed(), "campaign");
  Scenario s;
  s.seed = test::Seed();
  s.topology = {.supernodes = 1, .drawers = 4, .hubs = 8, .clock = ClockSettings()};
  for (NodeId hub = 0; hub < 32; ++hub)
    s.topology.pcie.push_back({.hub = hub, .port = static_cast<int>(hub % 3)});
  const Topology topology = *Topology::Create(s.topology);
  s.workload = AllToAllWorkload{256 * 1024, Schedule::kSpread, true, PayloadMode::kVerified};
  for (int kind = 0; kind < kFaultKinds; ++kind) {
    if (static_cast<FaultKind>(kind) == FaultKind::kMiswired)
      continue;  // there are no D cables here
    for (int number = 0; number < kOfEachKind; ++number) {
      s.faults.push_back(RandomFault(static_cast<FaultKind>(kind), number, topology, random));
    }
  }
  const auto result = RunScenario(s, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->violations, testing::IsEmpty());
  std::map<FaultKind, std::uint64_t> injections;
  for (const FaultStatus& fault : result->faults) {
    EXPECT_EQ(fault.phase, FaultPhase::kRecovered) << fault.spec.id;
    EXPECT_EQ(fault.injections, fault.recoveries) << fault.spec.id;
    injections[fault.spec.kind] += fault.injections;
  }
  for (const auto& [kind, count] : injections) EXPECT_GE(count, 3u) << FaultKindName(kind);

  const NodeStats& total = result->total;
  const std::uint64_t sent = 32ull * 31;
  EXPECT_EQ(total.messages_sent, sent);
  EXPECT_EQ(total.messages_acknowledged + total.messages_failed, sent)
      << "every message is reported";
  EXPECT_EQ(result->failed.size(), total.messages_failed) << "a failure has a reason";
  EXPECT_GE(total.messages_delivered, total.messages_acknowledged) << "success is delivery";
  EXPECT_LE(total.messages_delivered, sent) << "once";
  EXPECT_EQ(total.payload_errors, 0u);
  EXPECT_GT(total.packets_resent, 0u);
  EXPECT_GT(total.packets_dropped[static_cast<std::size_t>(DropReason::kLinkDown)], 0u);

  ASSERT_FALSE(result->reroutes.empty());
  EXPECT_THAT(LeftDown(result->reroutes), testing::IsEmpty());
  EXPECT_EQ(result->reroutes.back().unreachable_pairs, 0u);
  for (PortId port = 0; port < kLinkPorts; ++port) EXPECT_EQ(total.ports[port].lanes_lost, 0u);
}

}  // namespace
}  // namespace percs
