// Kinds of networks: the shape each of them is, what is refused, and that everything of the machine
// works on them: proofs of routes, faults and reroutes, and the same digest for every placement.
#include "proto/scenario/topology_kind.h"

#include <fstream>
#include <tuple>

#include "emulator/routing/planner.h"
#include "emulator/workload/patterns.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/play.h"
#include "tests/support/scenario_text.h"
#include "tests/support/seed.h"
#include "tests/support/split_run.h"
#include "tests/support/temporary_folder.h"

namespace percs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Scenario Machine(const std::string& topology, const std::string& rest = "") {
  const auto scenario = Build(fmt::format("topology: {{{}}}\n{}", topology, rest));
  EXPECT_TRUE(scenario.ok()) << scenario.status();
  return scenario.ok() ? *scenario : Scenario();
}

std::string KindErrorOf(const std::string& topology, const std::string& rest = "") {
  const auto scenario = Build(fmt::format("topology: {{{}}}\n{}", topology, rest));
  return scenario.ok() ? "no error" : std::string(scenario.status().message());
}

std::tuple<int, int, int, int, int> Shape(const std::string& topology) {
  const TopologySpec t = Machine(topology).topology;
  return {t.supernodes, t.drawers, t.hubs, t.d_links_per_pair, t.endpoints};
}

TEST(TopologyKinds, EachIsAShapeOfThisMachine) {
  EXPECT_EQ(Shape("kind: percs, supernodes: 3, drawers: 2, hubs: 5"), std::tuple(3, 2, 5, 1, 0));
  EXPECT_EQ(Shape("kind: dragonfly, a: 4, g: 9, h: 2, p: 2"), std::tuple(9, 1, 4, 1, 2));
  // 12 switches are two drawers of six; 12 x 2 links for six other groups.
  EXPECT_EQ(Shape("kind: dragonfly, a: 12, g: 7, h: 2, p: 3"), std::tuple(7, 2, 6, 4, 3));
  EXPECT_EQ(Shape("kind: full_mesh, a: 32, p: 8"), std::tuple(1, 4, 8, 1, 8));
  EXPECT_EQ(Shape("kind: full_mesh, a: 5"), std::tuple(1, 1, 5, 1, 1));
  EXPECT_EQ(Shape("kind: dragonfly_1056"), Shape("kind: dragonfly, a: 8, g: 33, h: 4, p: 4"));
  EXPECT_EQ(PlacesOf(Machine("kind: dragonfly_1056").topology), 1'056u);
}

TEST(TopologyKinds, ASizeThatDoesNotFitIsNamedOnceWhereItStands) {
  using testing::StartsWith;
  EXPECT_THAT(KindErrorOf("kind: torus, dims: 1x4"),
              StartsWith("a.yaml:1:31: topology.dims: 1 is outside 2..4096"));
  EXPECT_THAT(KindErrorOf("kind: fat_tree, radix: 7"),
              StartsWith("a.yaml:1:35: topology.radix: 7 is no even number"));
  EXPECT_THAT(KindErrorOf("kind: torus, dims: 100x100"),
              StartsWith("a.yaml:1:1: topology: 10000 switches; write sizes"));
  EXPECT_THAT(KindErrorOf("supernodes: 1, drawers: 1, hubs: 1"),
              StartsWith("a.yaml:1:1: topology: 1 supernode x 1 drawer x 1 hub is a single"));
}

TEST(TopologyKinds, NoSwitchHasMoreGlobalLinksThanItsKindSays) {
  for (int a = 1; a <= 32; ++a) {
    for (const int h : {1, 2, 5, 16}) {
      const auto scenario =
          Build(fmt::format("topology: {{kind: dragonfly, a: {}, g: {}, h: {}, p: 1}}\n", a,
                            std::min(7, a * h + 1), h));
      if (!scenario.ok()) continue;
      const Topology topology = *Topology::Create(scenario->topology);
      for (NodeId node = 0; node < topology.hubs(); ++node) {
        int links = 0;
        for (PortId port = kDFirst; port < kHfiFirst; ++port)
          links += topology.connected(node, port);
        EXPECT_LE(links, h) << a << " switches";
      }
    }
  }
}

TEST(TopologyKinds, LinksAreAllOfOneKindUnlessTheFileSaysOtherwise) {
  const P7ihParameters same =
      Machine("kind: dragonfly_1056",
              "parameters: {ll: {rate: 12.8GB/s, wire: 7ns, buffer_flits: 99}}")
          .parameters;
  for (const LinkParameters* link : {&same.ll, &same.lr, &same.d}) {
    EXPECT_EQ(link->flit_time, 10'000);
    EXPECT_EQ(link->wire, 7'000);
    EXPECT_EQ(link->buffer_flits, 99);
  }
  EXPECT_EQ(same.hfi.flit_time, 10'000);
  EXPECT_EQ(same.hfi.wire, 0);
  EXPECT_EQ(same.w_flit_time, 2'500);  // four endpoints
  const P7ihParameters other = Machine("kind: dragonfly_1056",
                                       "parameters: {ll: {rate: 12.8GB/s}, d: {wire: 100ns}, "
                                       "w_rate: 12.8GB/s}")
                                   .parameters;
  EXPECT_EQ(other.d.flit_time, 10'000);
  EXPECT_EQ(other.d.wire, 100'000);
  EXPECT_EQ(other.w_flit_time, 10'000);
  EXPECT_EQ(Machine("supernodes: 1").parameters.lr.flit_time, P7ihParameters().lr.flit_time);
}

TEST(TopologyKinds, WrongSizesSayWhatWouldBeRight) {
  EXPECT_THAT(KindErrorOf("kind: dragonfly, a: 4, g: 10, h: 2, p: 2"),
              HasSubstr("topology.g: 9 other groups, but a x h = 4 x 2 = 8 global links per group; "
                        "write g at most 9, or raise a or h"));
  EXPECT_THAT(
      KindErrorOf("kind: dragonfly, a: 11, g: 3, h: 1, p: 1"),
      HasSubstr("topology.a: 11 switches are not 1 to 4 drawers of equally many, at most 8; "
                "write one of 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14,"));
  EXPECT_THAT(KindErrorOf("kind: dragonfly, a: 4, h: 2"),
              testing::AllOf(HasSubstr("topology.g: kind dragonfly needs it; write for example "
                                       "`g: 33`"),
                             HasSubstr("topology.p: kind dragonfly needs it")));
  EXPECT_THAT(KindErrorOf("kind: full_mesh, a: 4, h: 2"),
              HasSubstr("topology.h: not a size of kind full_mesh, which has a and p; remove it"));
  EXPECT_THAT(KindErrorOf("kind: dragonfly_1056, p: 2"),
              HasSubstr("topology.p: not a size of kind dragonfly_1056"));
  EXPECT_THAT(KindErrorOf("kind: dragonfly_1056, hubs: 2"), HasSubstr("topology.hubs: not a size"));
  EXPECT_THAT(KindErrorOf("hubs: 2, p: 2"), HasSubstr("topology.p: not a size of kind percs"));
  EXPECT_THAT(KindErrorOf("kind: full_mesh, a: 4, p: 9"), HasSubstr("topology.p"));
  EXPECT_THAT(KindErrorOf("kind: full_mesh, a: 1, p: 4"), HasSubstr("a single hub"));
  EXPECT_THAT(KindErrorOf("kind: mesh"), HasSubstr("topology.kind"));
}

constexpr const char* kMachines[] = {
    "kind: full_mesh, a: 6, p: 3", "kind: dragonfly, a: 4, g: 9, h: 2, p: 2",
    "kind: dragonfly, a: 10, g: 3, h: 1, p: 4", "kind: dragonfly, a: 2, g: 4, h: 3, p: 8"};

TEST(TopologyKinds, RoutesAreProvenFreeOfDeadlockAndOneVcIsRefusedWithItsCycle) {
  for (const char* machine :
       {kMachines[0], kMachines[1], kMachines[2], kMachines[3], "kind: dragonfly_1056"}) {
    const Topology topology = *Topology::Create(Machine(machine).topology);
    const TableSet tables = Planner(topology).Plan(Failures());
    const auto proof = CheckTables(topology, Failures(), tables, VcPolicy::kPosition);
    EXPECT_TRUE(proof.ok()) << machine << ": " << proof.status();
    const auto broken = CheckTables(topology, Failures(), tables, VcPolicy::kSingle);
    if (topology.supernodes() == 1) continue;  // one hop needs one VC
    EXPECT_THAT(std::string(broken.status().message()), HasSubstr("cycle")) << machine;
  }
}

// All patterns between endpoints, a link down and rerouted, every route mode.
TEST(TopologyKinds, FaultsRerouteAndEveryPlacementHasTheSameDigest) {
  PERCS_TRACE_SEED();
  int runs = 0;
  for (const char* machine : kMachines) {
    const bool groups = Machine(machine).topology.supernodes > 1;
    for (const std::string mode : {"hw_direct", "hw_indirect", "adaptive"}) {
      if (!groups && mode != "hw_direct") continue;  // no middle supernode
      for (const char* pattern : {"uniform", "tornado", "randperm", "diagonal"}) {
        Scenario scenario = Machine(
            machine, fmt::format("seed: {}\n"
                                 "parameters: {{detect: 2us, plan: 2us, install: 4us}}\n"
                                 "routing: {{fifo: {{mode: {}, selection: random}}}}\n"
                                 "workload: {{pattern: {{pattern: {}, count: 40, load: 0.3, "
                                 "reliable: true, payload: verified}}}}\n"
                                 "faults: [{{at: 3us, link_down: sn0-d0-h0/sn0-d0-h1}}]\n",
                                 test::Seed(), mode, pattern));
        const RunResult one = test::Play(scenario);
        EXPECT_TRUE(one.violations.empty()) << machine << one.violations.front();
        EXPECT_EQ(one.total.messages_delivered, one.total.messages_sent) << machine << pattern;
        EXPECT_FALSE(one.reroutes.empty());
        const auto split = test::SplitRun(scenario, test::Processes(3));
        ASSERT_TRUE(split.ok()) << split.status();
        EXPECT_EQ(split->digest, one.digest) << machine << mode << pattern;
        ++runs;
      }
    }
  }
  EXPECT_EQ(runs, 40);
}

TEST(TopologyKinds, EveryEndpointSendsAndReceivesOverItsOwnPort) {
  const Scenario scenario =
      Machine("kind: dragonfly, a: 4, g: 9, h: 2, p: 2",
              "workload: {pattern: {pattern: uniform, load: 0.1, measure: 200us}}");
  const RunResult result = test::Play(scenario);
  std::array<std::uint64_t, kHfiPorts> flits{};
  for (int port = 0; port < kHfiPorts; ++port)
    flits[port] = result.total.ports[kHfiFirst + port].sum(&VcStats::flits);
  EXPECT_NEAR(static_cast<double>(flits[0]), static_cast<double>(flits[1]),
              0.05 * static_cast<double>(flits[0]));
  for (int port = 2; port < kHfiPorts; ++port) EXPECT_EQ(flits[port], 0u);
  // Also to the other endpoint of the own switch: one of 71 others.
  const auto& here = result.measurement.paths.cells[PathLatencies::kDrawer][0];
  EXPECT_NEAR(static_cast<double>(here.count),
              static_cast<double>(result.total.packet_latency.count) / 71,
              0.3 * static_cast<double>(result.total.packet_latency.count) / 71);
}

TEST(Permutation, AFileNamesWhoSendsToWhom) {
  test::TemporaryFolder folder;
  const auto with = [&folder](const std::string& list, const std::string& topology) {
    std::ofstream(folder.path() + "/p.txt") << list;
    return Build(fmt::format("topology: {{{}}}\nworkload: {{pattern: {{pattern: permutation, "
                             "permutation_file: p.txt, count: 3}}}}\n",
                             topology),
                 folder.path());
  };
  const auto hubs =
      with("# a shift\nsn0-d0-h0 sn0-d0-h1\n\n2 0  # numbers, too\n", "drawers: 1, hubs: 3");
  ASSERT_TRUE(hubs.ok()) << hubs.status();
  EXPECT_THAT(std::get<PatternWorkload>(hubs->workload).permutation, ElementsAre(1, kNoNode, 0));
  EXPECT_EQ(test::Play(*hubs).total.packets_delivered, 6u);
  const auto endpoints = with("sn0-d0-h1.1 0\n", "kind: full_mesh, a: 2, p: 2");
  ASSERT_TRUE(endpoints.ok()) << endpoints.status();
  EXPECT_THAT(std::get<PatternWorkload>(endpoints->workload).permutation,
              ElementsAre(kNoNode, kNoNode, kNoNode, 0));

  const auto error = [&](const std::string& list, const char* topology = "drawers: 1, hubs: 3") {
    return std::string(with(list, topology).status().message());
  };
  EXPECT_THAT(error("0 1\n0 2\n"), HasSubstr("p.txt, line 2: 0 sends in line 1 already"));
  EXPECT_THAT(error("0 1\n2 1\n"), HasSubstr("line 2: 1 receives in line 1 already"));
  EXPECT_THAT(error("0 3\n"), HasSubstr("line 1: place 3 does not exist; places are 0 to 2"));
  EXPECT_THAT(error("0 0\n"), HasSubstr("line 1: 0 sends to itself"));
  EXPECT_THAT(error("0 1 2\n"), HasSubstr("line 1: 3 words; write `SENDER RECEIVER`"));
  EXPECT_THAT(error("sn0-d0-h7 1\n"), HasSubstr("line 1: no hub is named \"sn0-d0-h7\""));
  EXPECT_THAT(error("sn0-d0-h0 1\n", "kind: full_mesh, a: 2, p: 2"),
              HasSubstr("sn0-d0-h0 has 2 endpoints; write sn0-d0-h0.0 to sn0-d0-h0.1"));
  EXPECT_THAT(KindErrorOf("drawers: 1", "workload: {pattern: {pattern: permutation, count: 1}}"),
              HasSubstr("pattern permutation needs it"));
}

}  // namespace
}  // namespace percs
