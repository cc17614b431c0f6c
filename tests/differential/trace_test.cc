// Tracing on random networks: it records the very grants that the reference router makes, its waits
// leave nothing of a packet's time unexplained, and it changes nothing.
#include <map>

#include "emulator/sim/run.h"
#include "emulator/sim/traced_packet.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/differential/engine_run.h"
#include "tests/differential/random_network.h"
#include "tests/differential/reference_router.h"
#include "tests/support/seed.h"

namespace percs::reference {
namespace {

constexpr std::uint64_t kNetworks = 150;

std::vector<TracedPacket> TraceAll(const Scenario& scenario, Digest* digest) {
  std::vector<TraceEvent> events;
  RunOptions options;
  options.trace.emplace().count = kTracedPacketsMax;
  options.traced = &events;
  const auto result = RunScenario(scenario, options);
  EXPECT_TRUE(result.ok());
  if (result.ok()) *digest = result->digest;
  return MergeTrace(scenario.parameters, events);
}

// A grant as both sides know it.
using Grant = std::tuple<Time, NodeId, PortId, PortId, NodeId, std::uint64_t, int, int>;

std::vector<Grant> GrantsOf(const std::vector<TracedPacket>& packets) {
  std::vector<Grant> grants;
  for (const TracedPacket& p : packets) {
    for (const TracedHop& hop : p.hops) {
      for (const TracedGrant& g : hop.grants) {
        grants.emplace_back(g.at, hop.in.node, hop.in.port, hop.out.port, p.source, p.sequence,
                            g.first, g.flits);
      }
    }
  }
  std::sort(grants.begin(), grants.end());
  return grants;
}

std::vector<Grant> GrantsOf(const ReferenceResult& result) {
  std::vector<Grant> grants;
  for (NodeId node = 0; node < result.nodes.size(); ++node) {
    for (const ReferenceGrant& g : result.nodes[node].grants) {
      grants.emplace_back(g.time, node, g.input, g.output, g.source, g.sequence, g.first_flit,
                          g.flits);
    }
  }
  std::sort(grants.begin(), grants.end());
  return grants;
}

Time Sum(const TracedGrant& grant) {
  Time sum = 0;
  for (const Time t : grant.waited) sum += t;
  return sum;
}

TEST(Trace, RecordsTheGrantsOfTheReferenceRouterAndExplainsEveryWait) {
  PERCS_TRACE_SEED();
  std::array<Time, kWaits> waited{};
  for (std::uint64_t seed = test::Seed(); seed < test::Seed() + kNetworks; ++seed) {
    SCOPED_TRACE(testing::Message() << "network " << seed);
    const Scenario scenario = RandomNetwork(seed);
    const Topology topology = Topology::Create(scenario.topology).value();
    const absl::StatusOr<EngineRun> plain = RunEngine(scenario);
    ASSERT_TRUE(plain.ok());
    Digest digest;
    const std::vector<TracedPacket> packets = TraceAll(scenario, &digest);
    EXPECT_EQ(digest, plain->digest);
    const ReferenceResult reference =
        RunReference({.topology = &topology,
                      .parameters = scenario.parameters,
                      .tables = plain->tables,
                      .packets = std::get<ScriptedWorkload>(scenario.workload).packets,
                      .faults = scenario.faults,
                      .cables = scenario.cables,
                      .service = scenario.service,
                      .seed = scenario.seed,
                      .routing = scenario.routing});
    const std::vector<Grant> traced = GrantsOf(packets), granted = GrantsOf(reference);
    ASSERT_EQ(traced.size(), granted.size());
    for (std::size_t i = 0; i < traced.size(); ++i) ASSERT_EQ(traced[i], granted[i]) << i;
    for (const TracedPacket& p : packets) {
      ASSERT_TRUE(p.ended());
      for (const TracedHop& hop : p.hops) {
        Time from = hop.arrived;
        for (const TracedGrant& grant : hop.grants) {
          ASSERT_EQ(grant.at, from + Sum(grant)) << "packet " << p.sequence << " of " << p.source;
          from = grant.until;
          for (std::size_t w = 0; w < kWaits; ++w) waited[w] += grant.waited[w];
        }
      }
    }
    if (HasFailure()) return;
  }
  for (std::size_t w = 0; w < kWaits; ++w)
    EXPECT_GT(waited[w], 0) << WaitName(static_cast<Wait>(w));
}

}  // namespace
}  // namespace percs::reference
