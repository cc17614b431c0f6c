// The same scenario has the same digest wherever its hubs live. Method: run it in this process by
// one thread, then over daemons in several placements, and compare digests and counters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <iterator>
#include <string_view>

#include "proto/scenario/build.h"
#include "proto/scenario/reader.h"
#include "tests/distributed/cluster.h"

namespace percs::test {
namespace {

struct Case {
  const char* name;
  const char* text;             // YAML, over the defaults of one supernode of 32 hubs
  const char* links = nullptr;  // of topology kind `file`
};

const Case kCases[] = {
    {"AllToAllVerified", "workload: {all_to_all: {bytes: 8KiB}}"},
    {"AllToAllLinearRaw",
     "workload: {all_to_all: {bytes: 4KiB, schedule: linear, reliable: false}}"},
    {"UniformSaturated",
     "workload: {pattern: {pattern: uniform, load: 1, warm_up: 2us, measure: 4us}}"},
    {"HotspotReliable",
     "workload: {pattern: {pattern: hotspot, message_bytes: 6000B, count: 12, reliable: true, "
     "payload: verified}}"},
    {"TornadoSingleFlits",
     "workload: {pattern: {pattern: tornado, message_bytes: 100B, load: 0.6, measure: 5us}}"},
    {"TightBuffers",
     "parameters: {lr: {buffer_flits: 3}, ll: {buffer_flits: 5}}\n"
     "workload: {pattern: {pattern: randperm, load: 0.9, measure: 6us}}"},
    {"SupernodesOverDLinks",
     "topology: {supernodes: 4, drawers: 2, hubs: 4, d_links_per_pair: 3}\n"
     "workload: {pattern: {pattern: uniform, load: 0.3, measure: 6us}}"},
    {"AdaptiveByCongestionReports",
     "topology: {supernodes: 4, drawers: 2, hubs: 4}\n"
     "routing: {fifo: {mode: adaptive, selection: random, adaptive: pb}}\n"
     "workload: {pattern: {pattern: adversarial, load: 0.03, warm_up: 2us, measure: 6us}}\n"
     "faults:\n"
     "- {at: 2us, link_down: sn0-d0-h0/sn0-d0-h1}\n"
     "- {at: 4us, link_up: sn0-d0-h0/sn0-d0-h1}"},
    {"DirectPacketsDivertedInTransit",
     "topology: {kind: dragonfly, a: 4, g: 9, h: 2, p: 2}\n"
     "routing: {fifo: {mode: adaptive, selection: random, adaptive: in_transit}}\n"
     "workload: {pattern: {pattern: adversarial, load: 0.2, measure: 6us}}"},
    {"TorusOnDetours",
     "topology: {kind: torus, dims: 4x3x3, p: 2}\n"
     "parameters: {detect: 1us, plan: 500ns, install: 3us}\n"
     "workload: {pattern: {pattern: uniform, load: 0.2, measure: 16us}}\n"
     "faults:\n"
     "- {at: 1us, link_down: s0-0-0/s1-0-0}\n"
     "- {at: 10us, link_up: s0-0-0/s1-0-0}"},
    {"HyperxReliable",
     "topology: {kind: hyperx, dims: 5x4}\n"
     "workload: {all_to_all: {bytes: 4KiB}}\n"
     "faults: [{at: 1us, link_down: s0-0/s3-0}]"},
    {"FatTreeAllreduce",
     "topology: {kind: fat_tree, levels: 3, radix: 4}\n"
     "trees: [{name: world, members: all}]\n"
     "workload: {cau: {iterations: 20}}"},
    {"TorusMulticastWithClock",
     "topology: {kind: torus, dims: 4x4}\n"
     "parameters: {detect: 1us, plan: 500ns, install: 3us}\n"
     "multicast: [{name: everybody, source: s1-2}]\n"
     "clock: {period: 5us}\n"
     "workload: {pattern: {pattern: multicast, load: 0.1, measure: 24us}}\n"
     "faults:\n"
     "- {at: 6us, link_down: s1-2/s2-2}\n"
     "- {at: 16us, link_up: s1-2/s2-2}"},
    {"ListedNetwork",
     "topology: {kind: file}\n"
     "workload: {pattern: {pattern: uniform, load: 0.2, measure: 8us}}\n"
     "faults: [{at: 2us, link_down: a/b}]",
     "a b\nb c ll\nc d\nd e\ne a\na c ll\nf b\nf d"},
    {"CutsUnderLoad",
     "workload: {all_to_all: {bytes: 16KiB}}\n"
     "faults:\n"
     "- {at: 2us, link_down: sn0-d0-h0/sn0-d1-h0}\n"
     "- {at: 3us, link_down: sn0-d2-h1/sn0-d2-h7}\n"
     "- {at: 60us, link_up: sn0-d0-h0/sn0-d1-h0}"},
    {"CutHubGivesUp",
     "topology: {drawers: 1, hubs: 8}\n"
     "parameters: {retransmit_tries: 3}\n"
     "workload: {all_to_all: {bytes: 4KiB}}\n"
     "faults:\n"
     "- {at: 500ns, link_down: sn0-d0-h0/sn0-d0-h1}\n"
     "- {at: 500ns, link_down: sn0-d0-h0/sn0-d0-h2}\n"
     "- {at: 500ns, link_down: sn0-d0-h0/sn0-d0-h3}\n"
     "- {at: 500ns, link_down: sn0-d0-h0/sn0-d0-h4}\n"
     "- {at: 500ns, link_down: sn0-d0-h0/sn0-d0-h5}\n"
     "- {at: 500ns, link_down: sn0-d0-h0/sn0-d0-h6}\n"
     "- {at: 500ns, link_down: sn0-d0-h0/sn0-d0-h7}"},
    {"EndsBeforeItsLastCreditIsBack",
     "topology: {supernodes: 4, drawers: 1, hubs: 4}\n"
     "workload: {packets: [\n"
     "  {at: 0s, source: sn0-d0-h0, destination: sn1-d0-h1},\n"
     "  {at: 0s, source: sn0-d0-h0, destination: sn1-d0-h2},\n"
     "  {at: 0s, source: sn0-d0-h0, destination: sn1-d0-h3}]}"},
    {"CollectiveOfTasks",
     "topology: {drawers: 4, hubs: 2}\n"
     "workload: {collective: {operation: allreduce, algorithm: \"hybrid:p2p\", tasks_per_node: 5, "
     "bytes: 200B,\n"
     "                        rotate_root: true, iterations: 12}}"},
    {"HybridAllreduceOn1024Tasks",
     "topology: {drawers: 4, hubs: 8}\n"
     "workload: {collective: {algorithm: \"hybrid:cau\", tasks_per_node: 32, warm_up: 1, "
     "iterations: 4}}"},
    {"StopsInTheMiddle",
     "stop_at: 7us\n"
     "topology: {supernodes: 2, drawers: 2, hubs: 4}\n"
     "workload: {pattern: {pattern: uniform, load: 0.7, measure: 50us}}"},
    {"TwoBladesAndADrawer",
     "topology: {drawers: 1, hubs: 8}\n"
     "workload: {all_to_all: {bytes: 4KiB}}\n"
     "blades:\n"
     "- attach: sn0-d0-h0\n"
     "  programs:\n"
     "  - collective: {algorithm: ATOBarB, iterations: 20}\n"
     "  - exchange: {peer: blade1, bytes: 4KiB, rounds: 2}\n"
     "  - exchange: {peer: sn0-d0-h5, spes: 3, bytes: 1KiB, rounds: 2}\n"
     "- {attach: sn0-d0-h7, type: QS22, programs: [{exchange: {peer: blade0, bytes: 4KiB, rounds: "
     "2}}]}\n"
     "faults:\n"
     "- {at: 90us, spe_down: 'blade0:SPE3'}\n"
     "- {at: 10us, chip_link_degraded: {blade: blade1, share: 0.5}}\n"
     "- {at: 20us, eib_ring_lost: 'blade0:CELL0:RING2'}"},
};

v1::ApplyRequest RequestFromText(const char* text) {
  v1::ApplyRequest request;
  auto scenario = ReadScenarioText(text, "placement_test", ScenarioFormat::kYaml);
  EXPECT_TRUE(scenario.ok()) << scenario.status();
  if (scenario.ok()) *request.mutable_scenario() = *std::move(scenario);
  return request;
}

// tests/run --full sets it.
bool Full() {
  const char* const full = std::getenv("PERCS_FULL");
  return full && std::string_view(full) == "1";
}

// Every scenario whose place in the list is a multiple of `step`, one after the other on one
// fabric: what one run leaves behind must not show in the next.
void CompareAll(std::uint32_t daemons, bool uneven, std::size_t step = 1) {
  ClusterOptions options;
  options.daemons = daemons;
  Cluster cluster(options);
  for (std::size_t i = 0; i < std::size(kCases); i += step) {
    const Case& c = kCases[i];
    SCOPED_TRACE(c.name);
    v1::ApplyRequest request = RequestFromText(c.text);
    if (c.links != nullptr)
      request.mutable_scenario()->mutable_topology()->set_inline_links(c.links);
    const RunResult here = RunHere(request.scenario());
    if (uneven) {
      std::uint64_t left = here.nodes;
      for (std::uint32_t p = 0; p + 1 < daemons; ++p) {
        const std::uint64_t hubs = std::min<std::uint64_t>(left, (p * 5) % 8);
        request.add_nodes_per_process(hubs);
        left -= hubs;
      }
      request.add_nodes_per_process(left);
    }
    const auto there = cluster.Run(request);
    ASSERT_TRUE(there.ok()) << there.status();
    ExpectSame(there->result(), here);
  }
}

TEST(PlacementTest, FourProcessesOfEightHubsGiveTheDigestOfOneProcess) { CompareAll(4, false); }

TEST(PlacementTest, SevenUnevenProcessesGiveTheDigestOfOneProcess) { CompareAll(7, true); }

TEST(PlacementTest, AProcessPerHubGivesTheDigestOfOneProcess) {
  CompareAll(32, false, Full() ? 1 : 3);  // a window costs 32 processes most
}

TEST(PlacementTest, DocumentedScenariosGiveTheDigestOfOneProcess) {
  ClusterOptions options;
  options.daemons = 4;
  Cluster cluster(options);
  for (const char* file :
       {"two-hubs", "one-drawer", "supernode-alltoall", "link-failure", "cell-blades", "cau-tree",
        "triblades", "roadrunner", "collective-repair", "supernode-collective", "hfi-rdma",
        "hfi-jobs", "hfi-full-fifo", "hfi-pcie"}) {
    SCOPED_TRACE(file);
    const v1::ApplyRequest request =
        RequestFromFile("deploy/scenarios/" + std::string(file) + ".yaml");
    const auto there = cluster.Run(request);
    ASSERT_TRUE(there.ok()) << there.status();
    ExpectSame(there->result(), RunHere(request.scenario()));
  }
}

// With one virtual channel, routes over D links wait for each other in a circle. With the message
// layer timers go on, and the stall is noticed; without, nothing is left to do.
TEST(PlacementTest, ADeadlockHasTheVirtualTimeAndTheCycleOfOneProcess) {
  const std::string fabric =
      "topology: {supernodes: 4, drawers: 1, hubs: 4}\n"
      "parameters: {vc_policy: single, ll: {buffer_flits: 2}, d: {buffer_flits: 2},\n"
      "             stall_limit: 100us, retransmit_tries: 3}\n";
  Cluster cluster{ClusterOptions{}};
  for (const char* workload : {"workload: {all_to_all: {bytes: 16KiB}}",
                               "workload: {pattern: {pattern: uniform, count: 60, load: 1}}"}) {
    SCOPED_TRACE(workload);
    const v1::ApplyRequest request = RequestFromText((fabric + workload).c_str());
    const auto scenario = BuildScenario(request.scenario(), "");
    ASSERT_TRUE(scenario.ok()) << scenario.status();
    const auto here = RunScenario(*scenario, {});
    ASSERT_EQ(here.status().code(), absl::StatusCode::kFailedPrecondition) << here.status();
    EXPECT_THAT(std::string(here.status().message()),
                testing::AllOf(
                    testing::HasSubstr("deadlock at "), testing::HasSubstr("us of virtual time"),
                    testing::HasSubstr("wait-for cycle: sn"), testing::HasSubstr(":D0 VC 0 -> ")));
    const auto there = cluster.Run(request);
    EXPECT_EQ(there.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(there.status().message(), here.status().message());
  }
  const auto after = cluster.Run(RequestFromFile("deploy/scenarios/two-hubs.yaml"));
  EXPECT_TRUE(after.ok()) << after.status();
}

}  // namespace
}  // namespace percs::test
