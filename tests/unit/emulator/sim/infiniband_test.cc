// The InfiniBand tree as nodes of the engine: crossbars with credits and static routing by
// destination, alone and behind a gateway to a PERCS drawer. Times are reckoned by hand from the
// parameters; what breaks is gone around or lost with its reason, and nothing depends on where
// nodes live.
#include "emulator/sim/infiniband.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "emulator/base/random.h"
#include "emulator/node/triblade_node.h"
#include "emulator/roadrunner/cluster.h"
#include "emulator/scenario/link_settings.h"
#include "tests/support/executors.h"
#include "tests/support/play.h"
#include "tests/support/seed.h"
#include "tests/support/split_run.h"

namespace percs {
namespace {

using test::Play;
using test::SplitOptions;
using test::SplitRun;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// One hub, and blades in the tree at these places; they send what a script says. Blade i is node 1
// + i.
Scenario Tree(int cus, const std::vector<std::string>& places) {
  Scenario s;
  s.topology = {1, 1, 1, 1};
  s.topology.infiniband = InfinibandSpec{cus, ""};
  for (std::size_t i = 0; i < places.size(); ++i) {
    s.topology.blades.push_back({"blade" + std::to_string(i), places[i]});
  }
  s.workload = ScriptedWorkload{};
  return s;
}

// The same behind a drawer of four hubs: blade i is node 4 + i.
Scenario Mixed(int cus, const std::vector<std::string>& places) {
  Scenario s = Tree(cus, places);
  s.topology.hubs = 4;
  s.topology.infiniband->gateway = "sn0-d0-h1";
  return s;
}

void Send(Scenario* s, Time at, NodeId from, NodeId to, int bytes = kPacketBytesMax) {
  std::get<ScriptedWorkload>(s->workload).packets.push_back({at, from, to, 0, 0, bytes});
}

Topology Built(const Scenario& s) { return *Topology::Create(s.topology); }

LinkEnd Link(const Scenario& s, const std::string& name) {
  const auto link = Built(s).ParseLink(name);
  EXPECT_TRUE(link.ok()) << link.status();
  return link.ok() ? *link : LinkEnd{};
}

// Of the only packet: crossbars passed, and when it was delivered.
std::pair<std::uint64_t, Time> One(Scenario s, NodeId from, NodeId to, int bytes) {
  Send(&s, 0, from, to, bytes);
  const RunResult result = Play(s);
  EXPECT_THAT(result.violations, IsEmpty());
  EXPECT_EQ(result.total.packets_delivered, 1u);
  return {result.total.hops_delivered - 1, result.virtual_time};
}

TEST(Infiniband, PacketsPass1Or3CrossbarsInsideACuAnd5Or7Across) {
  const Scenario s = Tree(2, {"cu0-leaf0", "cu0-leaf0", "cu0-leaf1", "cu1-leaf0", "cu1-leaf1"});
  const P7ihParameters& p = s.parameters;
  for (const auto& [to, crossbars] :
       std::vector<std::pair<NodeId, std::uint64_t>>{{2, 1}, {3, 3}, {4, 5}, {5, 7}}) {
    const auto [passed, time] = One(s, 1, to, 128);
    EXPECT_EQ(passed, crossbars);
    // Into the adapter's ISR and out of the last one; every link in between takes a crossbar's time
    // and the cable.
    const Time latency = p.ib_crossbar - p.ib.flit_time;
    const Time hops = static_cast<Time>(crossbars + 1) * (p.ib_crossbar + p.ib.wire);
    EXPECT_EQ(time, p.hfi.flit_time + hops + latency + p.hfi.flit_time) << crossbars;
    // Fifteen flits more come a flit time apart: cut through, not stored in every crossbar. At both
    // ends the HFI, which is faster, has whole packets.
    const Time whole = One(s, 1, to, kPacketBytesMax).second;
    EXPECT_EQ(whole - time, 15 * (p.hfi.flit_time + p.ib.flit_time)) << crossbars;
  }
}

TEST(Infiniband, ACableCarries2GigabytesPerSecondEachWay) {
  Scenario s = Tree(1, {"cu0-leaf0", "cu0-leaf5"});
  for (int i = 0; i < 500; ++i) {
    Send(&s, 0, 1, 2);
    Send(&s, 0, 2, 1);
  }
  const RunResult result = Play(s);
  EXPECT_THAT(result.violations, IsEmpty());
  const double rate = 500.0 * kPacketBytesMax * 1000 / static_cast<double>(result.virtual_time);
  EXPECT_NEAR(rate, 2.0, 0.02);
  const auto ib = static_cast<std::size_t>(LinkClass::kIb);
  EXPECT_EQ(result.links[ib], 2u * 2 + 2u * 24 * 12);
  EXPECT_GT(result.utilisation_max[ib], 0.98);
}

TEST(Infiniband, EightTribladesOfALeafShareItsFourUplinks) {
  std::vector<std::string> places(8, "cu0-leaf0");
  places.insert(places.end(), 8, "cu1-leaf0");
  Scenario s = Tree(2, places);
  for (int i = 0; i < 100; ++i) {
    for (NodeId n = 1; n <= 8; ++n) Send(&s, 0, n, n + 8);
  }
  const RunResult result = Play(s);
  EXPECT_THAT(result.violations, IsEmpty());
  const double rate = 800.0 * kPacketBytesMax * 1000 / static_cast<double>(result.virtual_time);
  EXPECT_NEAR(rate, 4 * 2.0, 0.25);
}

// Seven send to one: its cable is the bottleneck, credits hold the others back, and nothing is
// lost.
TEST(Infiniband, CreditsHoldSendersBackWhereManySendToOne) {
  std::vector<std::string> places;
  for (int leaf = 0; leaf < 8; ++leaf) places.push_back("cu0-leaf" + std::to_string(leaf));
  Scenario s = Tree(1, places);
  for (int i = 0; i < 60; ++i) {
    for (NodeId n = 2; n <= 8; ++n) Send(&s, 0, n, 1);
  }
  const RunResult result = Play(s);
  EXPECT_THAT(result.violations, IsEmpty());
  EXPECT_EQ(result.total.packets_delivered, 420u);
  std::uint64_t stalls = 0, most_held = 0;
  for (const PortStats& port : result.total.ports) {
    stalls += port.credit_stall_ps;
    for (const VcStats& vc : port.vc) most_held = std::max<std::uint64_t>(most_held, vc.most_held);
  }
  EXPECT_GT(stalls, 0u);
  EXPECT_EQ(most_held, static_cast<std::uint64_t>(s.parameters.ib.buffer_flits));
  const double rate = 420.0 * kPacketBytesMax * 1000 / static_cast<double>(result.virtual_time);
  EXPECT_NEAR(rate, 2.0, 0.03);
}

TEST(Infiniband, AGatewayJoinsTheTreeAndTheHubs) {
  const Scenario s = Mixed(2, {"cu0-leaf0", "cu1-leaf1", "sn0-d0-h3"});
  const Topology t = Built(s);
  EXPECT_EQ(t.LinkName(t.gateway()), "sn0-d0-h1:D0");
  EXPECT_EQ(t.LinkName(t.Peer(t.gateway().node, t.gateway().port)), "cu0-leaf23:G0");
  EXPECT_EQ(t.ClassOfLink(t.gateway()), LinkClass::kD);
  // Leaf, spine, leaf 23; hub 1 and hub 2; and back. From CU 1 three crossbars more or less.
  EXPECT_EQ(One(s, 4, 2, 128).first, 1u + 3 + 1 - 1);
  EXPECT_EQ(One(s, 2, 4, 128).first, 1u + 1 + 3 - 1);
  EXPECT_EQ(One(s, 4, 6, 128).first, 1u + 3 + 2 - 1) << "to the blade at hub 3";
  EXPECT_EQ(One(s, 6, 5, 128).first, One(s, 5, 6, 128).first);
}

TEST(Infiniband, ADeadCableIsGoneAroundAfterTheReroute) {
  Scenario s = Tree(1, {"cu0-leaf0", "cu0-leaf1"});
  for (int i = 0; i < 400; ++i) Send(&s, i * 300 * kNanosecond, 1, 2, 512);
  // The spine of the destination's place carries all of it: 8 mod 12.
  s.faults = {SetLinkDown(30 * kMicrosecond, Link(s, "cu0-spine8:p1"))};
  const RunResult result = Play(s);
  EXPECT_THAT(result.violations, IsEmpty());
  ASSERT_EQ(result.reroutes.size(), 1u);
  EXPECT_EQ(result.reroutes[0].unreachable_pairs, 0u);
  EXPECT_NE(result.reroutes[0].first_packet, kNever);
  const std::uint64_t lost = result.total.packets_dropped[static_cast<int>(DropReason::kLinkDown)] +
                             result.total.packets_dropped[static_cast<int>(DropReason::kTruncated)];
  EXPECT_GT(lost, 50u) << "those between the failure and the commit";
  EXPECT_LT(lost, 130u);
  EXPECT_EQ(result.total.packets_delivered + lost, 400u + result.total.packets_synthesised)
      << "ends of torn ones";
}

TEST(Infiniband, ADeadCrossbarIsGoneAroundAndALeafsTribladesAreLostWithTheirReason) {
  Scenario s = Tree(1, {"cu0-leaf0", "cu0-leaf1"});
  for (int i = 0; i < 200; ++i) Send(&s, i * kMicrosecond, 1, 2, 512);
  FaultSpec down;
  down.id = "crossbar";
  down.kind = FaultKind::kHubDown;
  down.at = 30 * kMicrosecond;
  down.select.in = {*Built(s).ParseNode("cu0-spine8")};
  s.faults = {down};
  const RunResult spine = Play(s);
  EXPECT_THAT(spine.violations, IsEmpty());
  EXPECT_EQ(spine.reroutes.back().unreachable_pairs, 0u);
  EXPECT_GT(spine.total.packets_delivered, 150u);

  s.faults[0].select.in = {*Built(s).ParseNode("cu0-leaf1")};
  const RunResult leaf = Play(s);
  EXPECT_THAT(leaf.violations, IsEmpty());
  EXPECT_EQ(leaf.reroutes.back().unreachable_pairs, 2u);
  EXPECT_GT(leaf.total.packets_dropped[static_cast<int>(DropReason::kNoRoute)], 100u)
      << "refused where they start";
}

// Whatever cables, crossbars and gateways come and go: nothing is lost without a reason, no credit
// leaks, no deadlock.
TEST(Infiniband, RandomFailuresUnderRandomTrafficLoseNothingInSilence) {
  PERCS_TRACE_SEED();
  RandomStream random(test::Seed(), "infiniband failures");
  Scenario s = Mixed(2, {"cu0-leaf0", "cu0-leaf0", "cu0-leaf1", "cu0-leaf9", "cu1-leaf0",
                         "cu1-leaf3", "sn0-d0-h3"});
  s.seed = test::Seed();
  const Topology topology = Built(s);
  const auto below = [&](std::size_t n) { return random.Below(static_cast<std::uint32_t>(n)); };
  for (int i = 0; i < 3000; ++i) {
    const NodeId from = below(11), to = below(11);
    if (from != to)
      Send(&s, below(200'000) * Time{1'000}, from, to, 1 + static_cast<int>(below(2048)));
  }
  // Cables that traffic uses: those of the crossbars next to triblades and their spines.
  std::vector<LinkEnd> cables;
  for (const LinkEnd& link : topology.Links()) {
    if (topology.has_tree() && (link.node < topology.hubs() ? link == topology.gateway() : true))
      cables.push_back(link);
  }
  for (int i = 0; i < 60; ++i) {
    const LinkEnd cable = cables[below(cables.size())];
    const Time at = (1 + below(150)) * kMicrosecond;
    s.faults.push_back(SetLinkDown(at, cable));
    s.faults.push_back(SetLinkUp(at + (1 + below(50)) * kMicrosecond, cable));
  }
  s.faults.push_back(SetErrorRate(5 * kMicrosecond, Link(s, "blade0:N0"), 0.02));
  const RunResult one = Play(s);
  EXPECT_THAT(one.violations, IsEmpty());
  EXPECT_GT(one.total.packets_delivered, 2000u);
  EXPECT_GT(one.reroutes.size(), 1u);
  for (const int processes : {2, 5}) {
    SplitOptions split;
    split.processes = processes;
    split.process_of = [processes](NodeId node) { return static_cast<int>(node) % processes; };
    split.seed = test::Seed();
    const auto result = SplitRun(s, split);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(one.digest, result->digest) << processes;
  }
  RunOptions threads;
  threads.threads = 2;
  threads.executor = &test::kThreads;
  const auto two = RunScenario(s, threads);
  ASSERT_TRUE(two.ok()) << two.status();
  EXPECT_EQ(one.digest, two->digest);
}

TEST(Infiniband, AFullCuTakesTrafficAmongItsEnds) {
  Scenario s = Tree(1, std::vector<std::string>(180, "cu0"));
  for (NodeId n = 1; n <= 180; ++n) Send(&s, 0, n, 181 - n);
  const RunResult result = Play(s);
  EXPECT_THAT(result.violations, IsEmpty());
  EXPECT_EQ(result.total.packets_delivered, 180u);
  EXPECT_EQ(result.nodes, 1u + 180 + 36);
}

TEST(Infiniband, PlacesThatDoNotExistAreRefusedWithTheArithmetic) {
  const auto refusal = [](const Scenario& s) {
    return std::string(Topology::Create(s.topology).status().message());
  };
  EXPECT_THAT(refusal(Tree(1, std::vector<std::string>(181, "cu0"))),
              HasSubstr("CU 0: 181 triblades; its switch of 288 ports has 24 leaves x 4 uplinks = "
                        "96 ports to other "
                        "CUs and takes 1 to 180 triblades"));
  EXPECT_THAT(refusal(Tree(25, {"cu0"})),
              HasSubstr("25 CUs; the eight inter-CU switches join 1 to 24"));
  EXPECT_THAT(refusal(Tree(1, {"cu1"})), HasSubstr("cu1 does not exist; write CUs 0 to 0"));
  EXPECT_THAT(refusal(Tree(1, {"cu0-leaf24"})),
              HasSubstr("cu0-leaf24 does not exist; write CUs 0 to 0 with leaves 0 to 23"));
  EXPECT_THAT(refusal(Tree(1, {"cu0-spine1"})), HasSubstr("is not a place in the InfiniBand tree"));
  EXPECT_THAT(refusal(Tree(2, {"sw0-a0"})), HasSubstr("has only cables to other crossbars"));
  EXPECT_THAT(refusal(Tree(1, std::vector<std::string>(9, "cu0-leaf2"))),
              HasSubstr("all 8 are taken"));
  Scenario gateway = Mixed(1, {"cu0"});
  gateway.topology.infiniband->gateway = "sn0-d0-h9";
  EXPECT_THAT(refusal(gateway), HasSubstr("topology.infiniband.gateway: no hub is named"));
}

// --- Triblades -----------------------------------------------------------------------------------

Scenario Triblades(const std::vector<std::string>& places, CollectiveOperation operation,
                   std::uint32_t bytes, std::uint64_t iterations) {
  Scenario s = Mixed(2, places);
  s.workload = AllToAllWorkload{8192, Schedule::kSpread, true, PayloadMode::kVerified};
  BladeConfig config;
  config.type = kTribladeType;
  config.programs = {CollectiveProgram{operation, "auto", 16, bytes, iterations}};
  s.blades.assign(places.size(), config);
  return s;
}

// The packets of this tree and the reservations of the timing form's take the same time where
// nothing is in the way.
TEST(Infiniband, CollectivesTakeTheTimeThatTheTimingFormsNetworkGivesThem) {
  constexpr std::uint32_t kBytes = 16;
  const RunResult packets =
      Play(Triblades({"cu0-leaf0", "cu0-leaf0"}, CollectiveOperation::kBarrier, kBytes, 20));
  EXPECT_THAT(packets.violations, IsEmpty());
  const auto cluster =
      *roadrunner::Cluster::Create(roadrunner::DefaultParameters(), {.triblades = 2});
  ASSERT_TRUE(cluster
                  ->LaunchAll(roadrunner::FullImage(1024),
                              [](roadrunner::Cml& mpi) -> Task<> {
                                co_await mpi.Init();
                                for (int i = 0; i < 20; ++i) co_await mpi.Barrier();
                                co_await mpi.Finalize();
                              })
                  .ok());
  const roadrunner::ClusterResult reserved = cluster->Run();
  ASSERT_TRUE(reserved.status.ok()) << reserved.status;
  const auto time = static_cast<double>(packets.programs[0].finished);
  EXPECT_NEAR(time / static_cast<double>(reserved.time), 1.0, 0.01);
}

TEST(Infiniband, TribladesOfTheTreeAndOfADrawerAreOneMachineWhicheverProcessesTheyLiveIn) {
  PERCS_TRACE_SEED();
  const Scenario s =
      Triblades({"cu0-leaf0", "cu1-leaf2", "sn0-d0-h3"}, CollectiveOperation::kReduce, 512, 3);
  const RunResult one = Play(s);
  EXPECT_THAT(one.violations, IsEmpty());
  EXPECT_EQ(one.total.payload_errors, 0u);
  ASSERT_EQ(one.programs.size(), 3u);
  for (const BladeProgramResult& program : one.programs) {
    EXPECT_EQ(program.problem, "");
    EXPECT_EQ(program.program, "reduce of CML on 96 ranks, 512 bytes");
  }
  SplitOptions split;
  split.processes = 4;
  split.seed = test::Seed();
  const auto result = SplitRun(s, split);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(one.digest, result->digest);
}

TEST(Infiniband, ATribladeThatIsCutOffFailsItsPeersWithTheReason) {
  Scenario s = Triblades({"cu0-leaf0", "cu0-leaf1"}, CollectiveOperation::kReduce, 512, 20);
  s.faults = {SetLinkDown(20 * kMicrosecond, Link(s, "blade1:N0"))};
  const auto result = RunScenario(s, RunOptions());
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(std::string(result.status().message()),
              HasSubstr("the network has no route to triblade"));
}

}  // namespace
}  // namespace percs
