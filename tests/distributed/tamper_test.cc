// The controller folds only what daemons computed from what they received. Method: one daemon's
// outgoing batches are changed at one place; the digest must differ, or the change must be
// detected.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/distributed/cluster.h"

namespace percs::test {
namespace {

class TamperTest : public ::testing::Test {
 protected:
  // Runs one drawer over two daemons, with `change` applied to batches of daemon 0 until it returns
  // true for the first time. Returns whether the result shows it.
  bool IsNoticed(const std::function<bool(Outbox*)>& change) {
    v1::ApplyRequest request = RequestFromFile("deploy/scenarios/one-drawer.yaml");
    auto* workload = request.mutable_scenario()->mutable_workload()->mutable_all_to_all();
    workload->set_bytes(8192);
    workload->set_reliable(false);
    workload->set_payload(v1::PAYLOAD_VERIFIED);
    const RunResult here = RunHere(request.scenario());
    EXPECT_TRUE(here.violations.empty());
    bool changed = false;
    ClusterOptions options;
    options.tap = [&](std::uint32_t from, std::uint32_t, Outbox* outbox) {
      if (from == 0 && !changed) changed = change(outbox);
    };
    Cluster cluster(options);
    const auto there = cluster.Run(request);
    EXPECT_TRUE(changed);
    if (!there.ok()) return true;
    return there->result().digest() != here.digest.ToString() ||
           there->result().violations_size() > 0;
  }
};

TEST_F(TamperTest, NothingIsNoticedWhereNothingIsChanged) {
  EXPECT_FALSE(IsNoticed([](Outbox*) { return true; }));
}

TEST_F(TamperTest, AFlippedPayloadByteIsNoticed) {
  EXPECT_TRUE(IsNoticed([](Outbox* outbox) {
    for (FlitRun& run : outbox->flits) {
      if (!run.header.payload || run.first != 0) continue;
      PayloadRef copy = PayloadRef::Make();
      std::memcpy(copy.bytes(), run.header.payload.bytes(), kPacketBytesMax);
      copy.bytes()[5] ^= 1;
      run.header.payload = copy;
      return true;
    }
    return false;
  }));
}

TEST_F(TamperTest, AWithheldCreditIsNoticed) {
  EXPECT_TRUE(IsNoticed([](Outbox* outbox) {
    if (outbox->credits.empty()) return false;
    if (--outbox->credits.back().count == 0) outbox->credits.pop_back();
    return true;
  }));
}

TEST_F(TamperTest, AFlippedArbitrationIsNoticed) {
  // Another winner at the output: the packet that won leaves one packet later.
  EXPECT_TRUE(IsNoticed([](Outbox* outbox) {
    for (FlitRun& run : outbox->flits) {
      if (run.first != 0 || !run.tail) continue;
      run.arrival += run.count * run.spacing;
      return true;
    }
    return false;
  }));
}

TEST_F(TamperTest, ADuplicatedRunIsNoticed) {
  EXPECT_TRUE(IsNoticed([](Outbox* outbox) {
    if (outbox->flits.empty()) return false;
    outbox->flits.push_back(outbox->flits.front());
    return true;
  }));
}

TEST_F(TamperTest, ARunForAHubElsewhereIsRefusedByItsReceiver) {
  EXPECT_TRUE(IsNoticed([](Outbox* outbox) {
    if (outbox->credits.empty()) return false;
    outbox->credits.front().node = 0;
    return true;
  }));
}

}  // namespace
}  // namespace percs::test
