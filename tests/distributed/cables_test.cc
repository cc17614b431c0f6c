// Cables that are swapped between processes that share no link. Method: run the scenario in this
// process by one thread, then over daemons of few hubs, so that a swapped cable joins two of them
// that had no stream to each other, and compare digests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "emulator/base/random.h"
#include "proto/scenario/build.h"
#include "tests/distributed/cluster.h"
#include "tests/support/seed.h"

namespace percs::test {
namespace {

void RunBothWays(Cluster& cluster, const v1::ApplyRequest& request) {
  const RunResult here = RunHere(request.scenario());
  const auto there = cluster.Run(request);
  ASSERT_TRUE(there.ok()) << there.status();
  ExpectSame(there->result(), here);
}

TEST(CablesTest, FaultsOfEveryKindGiveTheDigestOfOneProcessWhereverTheHubsAre) {
  ClusterOptions options;
  options.daemons = 5;
  Cluster cluster(options);
  RunBothWays(cluster, RequestFromFile("deploy/scenarios/every-fault.yaml"));
}

TEST(CablesTest, CablesAreSwappedBetweenDaemonsOfOneHub) {
  ClusterOptions options;
  options.daemons = 6;
  Cluster cluster(options);
  RunBothWays(cluster, RequestFromFile("deploy/scenarios/miswired.yaml"));
}

TEST(CablesTest, ManyFlitsGoOverASwappedCable) {
  // Two hubs that are joined by one short link, and then by D cables, too, all of them busy: more
  // packets are open between them than their link has virtual channels.
  v1::ApplyRequest request = Traffic(1, 2, 0.9);
  request.set_hold(false);
  v1::Scenario* scenario = request.mutable_scenario();
  scenario->mutable_topology()->set_supernodes(3);
  scenario->mutable_topology()->set_d_links_per_pair(4);
  v1::PatternTraffic* pattern = scenario->mutable_workload()->mutable_pattern();
  pattern->set_message_bytes(16'384);
  pattern->set_measure(30 * kMicrosecond);
  for (int i = 0; i < 2; ++i) {
    v1::Fault* fault = scenario->add_faults();
    fault->set_id("swap-" + std::to_string(i));
    fault->set_at((5 + i) * kMicrosecond);
    fault->mutable_inject()->set_kind(v1::FAULT_KIND_MISWIRED);
    fault->mutable_inject()->mutable_select()->set_link("sn0-d0-h0:D" + std::to_string(i));
    fault->mutable_inject()->set_with("sn0-d0-h1:D" + std::to_string(i));
    fault->mutable_inject()->set_duration(15 * kMicrosecond);
  }
  ClusterOptions options;
  options.daemons = 6;
  Cluster cluster(options);
  RunBothWays(cluster, request);
}

v1::ApplyRequest DrawnSwap(RandomStream& random, std::uint32_t daemons) {
  const std::uint32_t supernodes = 3 + random.Below(3), hubs = 1 + random.Below(4);
  v1::ApplyRequest request = Traffic(1, hubs, 0.05 + 0.1 * random.Below(5));
  request.set_hold(false);
  v1::Scenario* scenario = request.mutable_scenario();
  scenario->set_seed(random.Next() >> 32);
  scenario->mutable_topology()->set_supernodes(supernodes);
  scenario->mutable_topology()->set_d_links_per_pair(2);
  scenario->mutable_service()->set_probe_rounds(4);
  scenario->mutable_service()->set_probe_period(10 * kMicrosecond);
  v1::PatternTraffic* pattern = scenario->mutable_workload()->mutable_pattern();
  pattern->set_measure(40 * kMicrosecond);
  pattern->set_reliable(random.Below(2) == 0);
  v1::Fault* fault = scenario->add_faults();
  fault->set_id("swap");
  fault->set_at(5 * kMicrosecond);
  v1::Injection* inject = fault->mutable_inject();
  inject->set_kind(v1::FAULT_KIND_MISWIRED);
  inject->set_mode(v1::FAULT_MODE_FIXED);
  inject->set_count(2);
  inject->set_duration((1 + random.Below(30)) * kMicrosecond);
  std::uint32_t left = supernodes * hubs;
  for (std::uint32_t p = 0; p + 1 < daemons; ++p) {
    const std::uint32_t block = random.Below(std::min(left, 4u) + 1);
    request.add_nodes_per_process(block);
    left -= block;
  }
  request.add_nodes_per_process(left);
  return request;
}

TEST(CablesTest, DrawnSwapsGiveTheDigestOfOneProcessInDrawnPlacements) {
  PERCS_TRACE_SEED();
  RandomStream random(Seed(), "swapped cables");
  constexpr std::uint32_t kDaemons = 7;
  ClusterOptions options;
  options.daemons = kDaemons;
  Cluster cluster(options);
  for (int trial = 0; trial < 6; ++trial) {
    SCOPED_TRACE(trial);
    v1::ApplyRequest request;
    do {  // until no cable would join a hub to itself
      request = DrawnSwap(random, kDaemons);
    } while (!BuildScenario(request.scenario(), "").ok());
    RunBothWays(cluster, request);
  }
}

}  // namespace
}  // namespace percs::test
