// Service ports (docs/semantics.md B.10). Every rule, also beside data, errors and dying links, is
// held to the reference router by tests/differential; here are times by hand, what no random
// network asks for, and placement.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulator/node/service_agent.h"
#include "emulator/scenario/link_settings.h"
#include "emulator/sim/run.h"
#include "tests/support/split_run.h"

namespace percs {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr auto kNoSlot = static_cast<std::size_t>(DropReason::kNoServiceSlot);
constexpr auto kTimeout = static_cast<std::size_t>(DropReason::kServiceTimeout);
constexpr auto kDown = static_cast<std::size_t>(DropReason::kLinkDown);

Scenario DrawerOf(int hubs) {
  Scenario s;
  s.topology = {.supernodes = 1, .drawers = 1, .hubs = hubs};
  return s;
}

NodeStats Total(const Scenario& scenario) {
  const auto result = RunScenario(scenario, {});
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return {};
  EXPECT_THAT(result->violations, IsEmpty());
  return result->total;
}

TEST(ServicePort, APingTakesTheTimeOfItsPortsAndLinks) {
  Scenario s = DrawerOf(2);
  s.service.pings = {{.from = 0, .to = 1}};
  const NodeStats total = Total(s);
  // Into the ISR, over the LL link, out of the service port; the same way back.
  constexpr std::uint64_t kOneWay = 5'334 + (50'000 + 5'334 + 5'000) + (50'000 + 5'334);
  EXPECT_EQ(total.service_answers, 1u);
  EXPECT_EQ(total.service_round_trip_ps, 2 * kOneWay);
  EXPECT_EQ(total.ports[0].service_flits, 2u);
  EXPECT_EQ(total.ports[kServicePort].service_flits, 2u);
  EXPECT_EQ(total.packets_delivered, 2u);
}

TEST(ServicePort, EveryNeighbourOfEveryLinkIsWhoTheWiringSays) {
  Scenario s;
  s.topology = {.supernodes = 3, .drawers = 2, .hubs = 4, .d_links_per_pair = 8};
  s.service.probe_rounds = 2;
  const auto links = Topology::Create(s.topology)->Links().size();
  const NodeStats total = Total(s);
  EXPECT_EQ(total.service_answers, 2 * 2 * links);
  EXPECT_EQ(total.service_unanswered, 0u);
  EXPECT_EQ(total.service_wrong_partner, 0u);
}

// The test stands in for two plugs that were swapped: the answer names the port it went out of.
TEST(ServicePort, AnAnswerOfAnotherPortIsSeen) {
  Scenario s = DrawerOf(2);
  s.service.probe_rounds = 1;
  test::SplitOptions options;
  options.processes = 2;
  options.process_of = [](NodeId node) { return static_cast<int>(node); };
  int swapped = 0;
  options.tamper = [&](int, int, Outbox& box) {
    for (FlitRun& run : box.flits) {
      if (run.header.offset == 0 || swapped > 0) continue;
      run.header.offset ^= 3;
      ++swapped;
    }
  };
  const auto result = test::SplitRun(s, options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(swapped, 1);
  EXPECT_EQ(result->total.service_wrong_partner, 1u);
  EXPECT_EQ(result->total.service_answers, 2u);
}

TEST(ServicePort, WhatFindsNoRoomIsDroppedAndSentAgain) {
  Scenario s = DrawerOf(2);
  s.parameters.service_buffer_flits = 1;
  for (int i = 0; i < 4; ++i) s.service.pings.push_back({.from = 0, .to = 1});
  s.service.tries = 4;
  const NodeStats total = Total(s);
  EXPECT_EQ(total.packets_dropped[kNoSlot], 3u + 2 + 1);
  EXPECT_EQ(total.service_answers, 4u);
  s.service.tries = 2;
  const NodeStats fewer = Total(s);
  EXPECT_EQ(fewer.service_answers, 2u);
  EXPECT_EQ(fewer.service_unanswered, 2u);
}

TEST(ServicePort, ADeadLinkIsSilentUntilItComesBack) {
  Scenario s = DrawerOf(2);
  s.reroute = false;
  s.service.probe_rounds = 1;
  s.service.probe_at = kMicrosecond;
  s.faults = {SetLinkDown(0, {0, 0}), SetLinkUp(60 * kMicrosecond, {0, 0})};
  const NodeStats total = Total(s);
  EXPECT_EQ(total.packets_dropped[kDown], 2u * 2);  // at 1 us and at 51 us
  EXPECT_EQ(total.service_requests, 2u * 3);
  EXPECT_EQ(total.service_answers, 2u);
}

// One direction is as slow as it can be, and its slots run out: a packet waits no longer than it
// may.
TEST(ServicePort, NobodyWaitsLongerThanServiceWait) {
  Scenario s = DrawerOf(2);
  s.parameters.service_wait = 100'000;
  s.parameters.credit_processing = 10 * kMicrosecond;
  s.parameters.service_buffer_flits = 1;
  s.service.pings = {{.from = 0, .to = 1, .count = 3, .period = 6'000}};
  s.service.tries = 1;
  const NodeStats total = Total(s);
  EXPECT_EQ(total.packets_dropped[kTimeout], 1u);
  EXPECT_EQ(total.packets_dropped[kNoSlot], 1u);
  EXPECT_EQ(total.service_answers, 1u);
}

Scenario PingsInTraffic() {
  Scenario s;
  s.topology = {.supernodes = 2, .drawers = 2, .hubs = 2, .d_links_per_pair = 2};
  PatternWorkload uniform;
  uniform.load = 0;
  uniform.count = 300;
  s.workload = uniform;
  s.service.probe_rounds = 40;
  s.service.probe_period = 500'000;
  s.service.pings = {{.from = 0, .to = 7, .count = 200, .period = 100'000}};
  return s;
}

TEST(ServicePort, SaturatedLinksDelayAPacketByOneCommitmentPerHopAtMost) {
  Scenario s = PingsInTraffic();
  s.service.probe_rounds = 0;
  s.service.pings = {{.from = 0, .to = 7, .count = 40, .period = 5 * kMicrosecond}};
  const NodeStats total = Total(s);
  EXPECT_EQ(total.service_answers, 40u);
  EXPECT_EQ(total.service_requests, 40u);
  // Three links each way, at most, and into and out of two service ports.
  const Time longest = 16 * s.parameters.lr.flit_time;  // of a commitment
  const Time link = s.parameters.isr_latency + s.parameters.d.wire + s.parameters.lr.flit_time;
  const Time ports = s.parameters.isr_latency + 2 * s.parameters.hfi.flit_time;
  EXPECT_LT(total.service_round_trip_max,
            static_cast<std::uint64_t>(2 * (3 * (longest + link) + ports)));
  EXPECT_GT(total.packet_latency.Mean(), static_cast<double>(total.service_round_trip_max))
      << "of data, one way";
}

TEST(ServicePort, IsTheSameForAnyPlacement) {
  const Scenario s = PingsInTraffic();
  const auto whole = RunScenario(s, {});
  ASSERT_TRUE(whole.ok()) << whole.status();
  for (const int processes : {2, 3}) {
    test::SplitOptions options;
    options.processes = processes;
    options.process_of = [processes](NodeId node) { return static_cast<int>(node) % processes; };
    const auto split = test::SplitRun(s, options);
    ASSERT_TRUE(split.ok()) << split.status();
    EXPECT_THAT(split->violations, IsEmpty());
    EXPECT_EQ(split->digest, whole->digest);
    EXPECT_EQ(split->total.service_round_trip_ps, whole->total.service_round_trip_ps);
  }
}

TEST(ServicePort, RefusesWhatCannotBeAsked) {
  const Topology topology = Topology::Create({.supernodes = 1, .drawers = 1, .hubs = 2}).value();
  const auto refused = [&](const ServiceTraffic& traffic) {
    return std::string(CheckService(traffic, topology).message());
  };
  EXPECT_THAT(refused({.pings = {{.from = 0, .to = 2}}}),
              "pings[0]: sn0-d0-h0 pings node 2; write two different hubs");
  EXPECT_THAT(refused({.pings = {{.from = 1, .to = 1}}}), HasSubstr("two different hubs"));
  EXPECT_THAT(refused({.pings = {{.from = 0, .to = 1, .count = 0}}}),
              HasSubstr("at least 1 time and 1ps"));
  EXPECT_THAT(refused({.pings = {}, .probe_rounds = 1, .tries = 0}), HasSubstr("0 tries"));
  EXPECT_THAT(refused({.pings = {}, .probe_rounds = 1'000'000}),
              HasSubstr("47000000 or more requests"));
  EXPECT_TRUE(CheckService({.pings = {{.from = 0, .to = 1}}, .probe_rounds = 3}, topology).ok());
}

}  // namespace
}  // namespace percs
