// Errors on a link: what replay costs, that nothing is lost or reordered, and that without it much
// is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "emulator/scenario/link_settings.h"
#include "emulator/sim/run.h"
#include "fmt/format.h"
#include "tests/support/seed.h"

namespace percs {
namespace {

constexpr int kCrc = static_cast<int>(DropReason::kCrc);

struct LinkCase {
  const char* name;
  TopologySpec topology;
  NodeId to;  // the other end of the link from node 0
};
const LinkCase kLinks[] = {
    {"LL", {1, 1, 2, 1}, 1}, {"LR", {1, 2, 1, 1}, 1}, {"D", {2, 1, 1, 1}, 1}};

PortId OutputTo(const Scenario& s, NodeId to) {
  const Topology topology = Topology::Create(s.topology).value();
  for (PortId port = 0; port < kLinkPorts; ++port) {
    if (topology.Peer(0, port).node == to) return port;
  }
  return kNoPort;
}

FaultSpec ErrorRate(LinkEnd sender, double rate, Time at = 0) {
  return SetErrorRate(at, sender, rate);
}
FaultSpec CorruptNext(LinkEnd sender, std::uint32_t count, Time at = 0) {
  return SetCorruptNext(at, sender, count);
}

constexpr int kDefaultBuffers = 0;

// `packets` packets of 16 flits from hub 0 over one link, as fast as it takes them.
Scenario Saturated(const LinkCase& link, std::uint64_t packets, int buffer_flits = 256) {
  Scenario s;
  s.topology = link.topology;
  s.seed = test::Seed();
  ScriptedWorkload script;
  for (std::uint64_t i = 0; i < packets; ++i) {
    script.packets.push_back({0, 0, link.to, static_cast<WindowId>(i % 8), 0, 2048});
  }
  s.workload = script;
  for (LinkParameters* l : {&s.parameters.ll, &s.parameters.lr, &s.parameters.d}) {
    if (buffer_flits != kDefaultBuffers) l->buffer_flits = buffer_flits;
  }
  s.reroute = false;
  return s;
}

Time RunTime(const Scenario& s) {
  const auto result = RunScenario(s, {});
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return 0;
  EXPECT_THAT(result->violations, testing::IsEmpty());
  EXPECT_EQ(result->total.packets_delivered, result->total.packets_created);
  for (const PortStats& port : result->total.ports) EXPECT_EQ(port.crc_errors, port.replays);
  return result->virtual_time;
}

// With the default buffers, and with some that no link ever waits for.
TEST(LinkReplay, GoodputIsThatOfGoBackN) {
  PERCS_TRACE_SEED();
  constexpr std::uint64_t kPackets = 30'000;
  for (const LinkCase& link : kLinks) {
    for (const int buffer_flits : {kDefaultBuffers, 256}) {
      Scenario s = Saturated(link, kPackets, buffer_flits);
      const PortId port = OutputTo(s, link.to);
      const LinkParameters& l = s.parameters.link(ClassOf(port));
      const auto clean = static_cast<double>(RunTime(s));
      if (buffer_flits != kDefaultBuffers) {
        EXPECT_NEAR(
            clean / static_cast<double>(16 * kPackets * static_cast<std::uint64_t>(l.flit_time)), 1,
            0.001);
      }
      for (const double p : {1e-4, 1e-3, 3e-3, 1e-2}) {
        SCOPED_TRACE(fmt::format("{} with {} slots at {}", link.name, l.buffer_flits, p));
        s.faults = {ErrorRate({0, port}, p)};
        const Time n =
            (2 * l.flit_time + 2 * l.wire + s.parameters.credit_processing - 1) / l.flit_time;
        const double formula = (1 - p) / (1 + (static_cast<double>(n) - 1) * p);
        const double goodput = clean / static_cast<double>(RunTime(s));
        EXPECT_NEAR(goodput / formula, 1, 0.02) << "N = " << n << ", goodput " << goodput;
      }
    }
  }
}

TEST(LinkReplay, EveryPayloadArrivesIntactAndWithoutReplayTheyDoNot) {
  PERCS_TRACE_SEED();
  for (const bool replay : {true, false}) {
    Scenario s;
    s.seed = test::Seed();
    s.topology = {2, 2, 2, 2};
    s.parameters.link_replay = replay;
    PatternWorkload traffic;
    traffic.load = 0.7;
    traffic.count = 500;
    traffic.payload = PayloadMode::kVerified;
    s.workload = traffic;
    const Topology topology = Topology::Create(s.topology).value();
    for (const LinkEnd& end : topology.Links()) {
      s.faults.push_back(ErrorRate(end, 0.01));
      s.faults.push_back(ErrorRate(topology.Peer(end.node, end.port), 0.01));
    }
    const auto result = RunScenario(s, {});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_THAT(result->violations, testing::IsEmpty());
    const NodeStats& total = result->total;
    EXPECT_EQ(total.packets_created, 8u * 500);
    EXPECT_EQ(total.packets_delivered == total.packets_created, replay);
    EXPECT_EQ(total.packets_dropped[kCrc], total.packets_created - total.packets_delivered);
    if (!replay) {
      EXPECT_GT(total.packets_dropped[kCrc], 500u);
    }
  }
}

TEST(LinkReplay, TheMessageLayerSendsAgainWhatIsLostWithoutReplay) {
  Scenario s;
  s.topology = {1, 1, 4, 1};
  s.parameters.link_replay = false;
  s.workload = AllToAllWorkload{65536, Schedule::kSpread, true, PayloadMode::kVerified};
  s.faults = {ErrorRate({0, 0}, 0.01)};
  const auto result = RunScenario(s, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->violations, testing::IsEmpty());
  EXPECT_EQ(result->total.messages_delivered, 12u);
  EXPECT_GT(result->total.packets_dropped[kCrc], 0u);
  EXPECT_GT(result->total.packets_resent, 0u);
}

// Time of delivery by sequence, with the next `corrupted` transmissions over 0's LL0 corrupted.
std::map<std::uint64_t, Time> Deliveries(std::uint32_t corrupted, Time at) {
  Scenario s = Saturated(kLinks[0], 3);
  if (corrupted > 0) s.faults = {CorruptNext({0, 0}, corrupted, at)};
  RunOptions options;
  std::map<std::uint64_t, Time> times;
  options.on_delivery = [&](NodeId, const Delivery& d) { times[d.sequence] = d.time; };
  EXPECT_TRUE(RunScenario(s, options).ok());
  return times;
}

TEST(LinkReplay, EachCorruptedTransmissionCostsOneRound) {
  // LL: 5334 + 2 x 5000 + 50000 ps are 13 flit times of 5334 ps. The rest of the packet is one flit
  // time behind its head, which waits for it at the far end.
  constexpr Time kFlit = 5334, kRound = 13 * kFlit;
  const auto clean = Deliveries(0, 0);
  ASSERT_EQ(clean.size(), 3u);
  for (const std::uint32_t corrupted : {1u, 2u, 5u}) {
    const auto times = Deliveries(corrupted, 0);
    for (const auto& [sequence, time] : times) {
      EXPECT_EQ(time - clean.at(sequence), corrupted * kRound + kFlit) << sequence;
    }
  }
}

TEST(LinkReplay, AnExhaustedLinkGoesDownAtBothEndsAndComesUpWhenTold) {
  Scenario s = Saturated(kLinks[0], 200);
  s.parameters.replay_limit = 4;
  s.faults = {CorruptNext({0, 0}, 4, 2 * kMicrosecond)};
  s.faults.push_back(SetLinkUp(100 * kMicrosecond, {0, 0}));
  ScriptedWorkload& script = std::get<ScriptedWorkload>(s.workload);
  script.packets.push_back({200 * kMicrosecond, 0, 1});
  const auto result = RunScenario(s, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->violations, testing::IsEmpty());
  EXPECT_EQ(result->total.alerts_raised, 4u) << "both ends, down and up";
  EXPECT_EQ(result->total.ports[0].replays, 4u);
  EXPECT_GT(result->total.packets_dropped[static_cast<int>(DropReason::kLinkDown)], 0u);
  EXPECT_GT(result->virtual_time, 200 * kMicrosecond) << "the last one was delivered";
}

TEST(LinkReplay, AnExhaustedLinkIsRoutedRound) {
  Scenario s;
  s.topology = {1, 1, 4, 1};
  s.workload = AllToAllWorkload{262144, Schedule::kSpread, true, PayloadMode::kVerified};
  s.faults = {ErrorRate({0, 0}, 1, 5 * kMicrosecond)};
  const auto result = RunScenario(s, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->violations, testing::IsEmpty());
  ASSERT_EQ(result->reroutes.size(), 1u);
  EXPECT_THAT(result->reroutes[0].down, testing::ElementsAre(LinkEnd{0, 0}));
  EXPECT_EQ(result->total.messages_delivered, 12u);
}

TEST(LinkReplay, WhatCannotBeIsRefused) {
  Scenario s = Saturated(kLinks[0], 1);
  for (const FaultSpec& wrong :
       {ErrorRate({0, 3}, 0.1), ErrorRate({0, 0}, 1.5), ErrorRate({0, 0}, -0.1)}) {
    s.faults = {wrong};
    EXPECT_EQ(RunScenario(s, {}).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(LinkReplay, BitErrorsMakeFlitErrors) {
  EXPECT_EQ(FlitErrorRate(0), 0);
  EXPECT_NEAR(FlitErrorRate(1e-12), 1024e-12, 1e-14);
  EXPECT_NEAR(FlitErrorRate(1e-3), 0.641, 0.001);
  EXPECT_EQ(FlitErrorRate(1), 1);
}

}  // namespace
}  // namespace percs
