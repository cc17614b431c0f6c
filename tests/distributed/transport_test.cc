// Broken, stalled and slow connections are no event of the machine. Method: a proxy between every
// two processes spoils the Link and Sync connections at seeded moments; digests must stay what they
// are in one process.
#include <gtest/gtest.h>

#include "fmt/format.h"
#include "tests/distributed/cluster.h"
#include "tests/distributed/proxy.h"
#include "tests/support/seed.h"

namespace percs::test {
namespace {

std::uint64_t Reconnects(const v1::StatusReply& status) {
  std::uint64_t sum = 0;
  for (const v1::ProcessStatus& p : status.processes()) sum += p.reconnects();
  return sum;
}

class TransportTest : public ::testing::TestWithParam<const char*> {
 protected:
  // Runs the scenario through a proxy and returns how often streams were opened again.
  std::uint64_t Compare(ProxyOptions options) {
    options.seed = Seed();
    const v1::ApplyRequest request = RequestFromFile(GetParam());
    const RunResult here = RunHere(request.scenario());
    proxy_ = std::make_unique<Proxy>(options);
    ClusterOptions cluster_options;
    cluster_options.daemons = 4;
    cluster_options.proxy = [this](const std::string& real) { return proxy_->AddressFor(real); };
    Cluster cluster(cluster_options);
    const auto there = cluster.Run(request);
    EXPECT_TRUE(there.ok()) << there.status();
    if (!there.ok()) return 0;
    EXPECT_EQ(there->result().digest(), here.digest.ToString());
    EXPECT_EQ(there->result().violations_size(), 0);
    return Reconnects(cluster.Status());
  }
  std::unique_ptr<Proxy> proxy_;
};

TEST_P(TransportTest, ResetConnectionsDoNotChangeTheDigest) {
  PERCS_TRACE_SEED();
  ProxyOptions options;
  options.reset_within_bytes = 20'000;
  EXPECT_GT(Compare(options), 0u);
  EXPECT_GT(proxy_->resets(), 3);
}

TEST_P(TransportTest, StalledConnectionsDoNotChangeTheDigest) {
  PERCS_TRACE_SEED();
  ProxyOptions options;
  options.stall_one_in = 200;
  options.stall = std::chrono::milliseconds(30);
  EXPECT_EQ(Compare(options), 0u);
  EXPECT_GT(proxy_->stalls(), 3);
}

TEST_P(TransportTest, DelayedBatchesDoNotChangeTheDigest) {
  PERCS_TRACE_SEED();
  ProxyOptions options;
  options.delay_max = std::chrono::microseconds(1000);
  EXPECT_EQ(Compare(options), 0u);
}

TEST_P(TransportTest, ResetsStallsAndDelaysTogetherDoNotChangeTheDigest) {
  PERCS_TRACE_SEED();
  ProxyOptions options;
  options.reset_within_bytes = 50'000;
  options.stall_one_in = 400;
  options.stall = std::chrono::milliseconds(20);
  options.delay_max = std::chrono::microseconds(1000);
  EXPECT_GT(Compare(options), 0u);
}

INSTANTIATE_TEST_SUITE_P(Scenarios, TransportTest,
                         ::testing::Values("deploy/scenarios/one-drawer.yaml",
                                           "deploy/scenarios/link-failure.yaml"));

}  // namespace
}  // namespace percs::test
