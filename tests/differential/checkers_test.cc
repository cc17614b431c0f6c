// Each checker and each field of the comparison fires on a hand-made wrong result.
#include "tests/differential/checkers.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/differential/compare.h"

namespace percs::reference {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Grants = std::vector<std::vector<ReferenceGrant>>;

// A packet of five flits from the HFI onto LL port 0 in two runs.
Grants RightGrants() {
  ReferenceGrant first{
      .time = 100, .output = 0, .input = 47, .source = 3, .sequence = 7, .flits = 2};
  ReferenceGrant rest = first;
  rest.time = 40'000;
  rest.first_flit = 2;
  rest.flits = 3;
  rest.tail = true;
  return {{first, rest}};
}
std::vector<std::string> Order(const Grants& grants) {
  return CheckFlitOrder(grants, P7ihParameters{}, /*links_failed=*/false);
}

TEST(Checkers, AcceptARightRecord) {
  EXPECT_THAT(Order(RightGrants()), IsEmpty());
  EXPECT_THAT(CheckVcPositions(RightGrants()), IsEmpty());
}

TEST(Checkers, FlitOrderSeesAMissingAndARepeatedFlit) {
  Grants grants = RightGrants();
  grants[0][1].first_flit = 3;
  EXPECT_THAT(Order(grants), ElementsAre(HasSubstr("flit 3 out of order")));
  grants[0][1].first_flit = 0;
  EXPECT_THAT(Order(grants), ElementsAre(HasSubstr("sent twice")));
}

TEST(Checkers, FlitOrderSeesAnotherPacketOnAnOpenVc) {
  Grants grants = RightGrants();
  grants[0][1].sequence = 8;
  EXPECT_THAT(Order(grants), ElementsAre(HasSubstr("has not begun there")));
  grants[0][1].first_flit = 0;
  EXPECT_THAT(Order(grants), ElementsAre(HasSubstr("VC of another packet")));
  EXPECT_THAT(CheckFlitOrder(grants, P7ihParameters{}, /*links_failed=*/true), IsEmpty());
  grants[0][1].output_vc = 1;  // two VCs interleave rightly
  EXPECT_THAT(Order(grants), IsEmpty());
}

TEST(Checkers, FlitOrderLetsACopyFromAnotherInputFollowOneThatWasCut) {
  Grants grants = RightGrants();
  grants[0][1].first_flit = 0;
  grants[0][1].input = 33;
  EXPECT_THAT(Order(grants), ElementsAre(HasSubstr("VC of another packet or copy")));
  EXPECT_THAT(CheckFlitOrder(grants, P7ihParameters{}, /*links_failed=*/true), IsEmpty());
  grants[0][1].input = grants[0][0].input;
  EXPECT_THAT(CheckFlitOrder(grants, P7ihParameters{}, /*links_failed=*/true),
              ElementsAre(HasSubstr("sent twice")));
}

TEST(Checkers, FlitOrderSeesOverlappingCommitments) {
  Grants grants = RightGrants();
  grants[0][1].time = 100 + 2 * 5'334 - 1;
  EXPECT_THAT(Order(grants), ElementsAre(HasSubstr("while the port was busy")));
  grants[0][1].time += 1;
  EXPECT_THAT(Order(grants), IsEmpty());
}

TEST(Checkers, VcPositionsSeeAVcThatIsTooHighTooLowOrNotThere) {
  Grants grants = RightGrants();
  grants[0][0].output_vc = 1;
  EXPECT_THAT(CheckVcPositions(grants), ElementsAre(HasSubstr("to port 0 VC 1")));
  grants = RightGrants();
  grants[0][0].input = 2;  // came in on L0: L1 is next
  EXPECT_THAT(CheckVcPositions(grants), ElementsAre(HasSubstr("from port 2 VC 0")));
  grants[0][0].output_vc = 1;
  EXPECT_THAT(CheckVcPositions(grants), IsEmpty());
  grants[0][0].input_vc = 2;  // came in on L2: nothing is left
  EXPECT_EQ(CheckVcPositions(grants).size(), 1u);
}

TEST(Checkers, ConservationSeesALostAndAnInventedFlitOrPacket) {
  std::vector<NodeStats> nodes(2);
  nodes[0].flits_created = 5;
  nodes[0].packets_created = 1;
  nodes[1].flits_synthesised = 1;
  nodes[1].packets_synthesised = 1;
  nodes[1].flits_delivered = 2;
  nodes[1].packets_delivered = 1;
  nodes[0].flits_dropped[0] = 4;
  nodes[0].packets_dropped[0] = 1;
  EXPECT_THAT(CheckConservation(nodes), IsEmpty());
  nodes[0].flits_dropped[0] = 3;
  EXPECT_THAT(CheckConservation(nodes), ElementsAre(HasSubstr("flits: created")));
  nodes[0].flits_dropped[0] = 4;
  nodes[1].packets_delivered = 2;
  EXPECT_THAT(CheckConservation(nodes), ElementsAre(HasSubstr("packets: created")));
}

TEST(Checkers, DrainedSeesADeadlockAndALostCredit) {
  ReferenceResult result;
  EXPECT_THAT(CheckDrained(result), IsEmpty());
  result.resident_packets = 2;
  result.credits_wrong = 1;
  EXPECT_THAT(CheckDrained(result), ElementsAre(HasSubstr("deadlock: 2"), HasSubstr("1 VCs")));
}

// Every integer the comparison covers, changed by one in turn, is reported.
TEST(Comparison, SeesEveryCounterAndEveryFieldOfADelivery) {
  ReferenceResult reference;
  reference.nodes.resize(2);
  reference.nodes[1].deliveries.push_back({10, 0, 1, 16, 99});
  Observed right;
  right.stats.resize(2);
  right.deliveries = {{}, reference.nodes[1].deliveries};
  EXPECT_THAT(Differences(reference, right), IsEmpty());

  NodeStats& stats = right.stats[1];
  int seen = 0, counters = 0;
  stats.Visit([&](std::uint64_t& value) {
    ++value;
    ++counters;
    seen += Differences(reference, right).size() == 1;
    --value;
  });
  // The reference does not model messages, payload checks, measurement, management and the latency
  // of messages.
  const int histogram = 3 + Histogram::kBuckets;
  EXPECT_EQ(counters - seen, 7 + 2 + 2 + 2 + histogram);

  for (auto change : std::vector<void (*)(ReferenceDelivery&)>{
           [](auto& d) { ++d.time; }, [](auto& d) { ++d.source; }, [](auto& d) { ++d.sequence; },
           [](auto& d) { ++d.flits; }, [](auto& d) { ++d.path; }}) {
    Observed wrong = right;
    change(wrong.deliveries[1][0]);
    EXPECT_THAT(Differences(reference, wrong), ElementsAre(HasSubstr("node 1 delivery 0")));
  }
  Observed wrong = right;
  wrong.deliveries[1].clear();
  EXPECT_THAT(Differences(reference, wrong), ElementsAre(HasSubstr("engine has none")));
  wrong.deliveries[1].resize(2, right.deliveries[1][0]);
  EXPECT_THAT(Differences(reference, wrong), ElementsAre(HasSubstr("reference has none")));
}

}  // namespace
}  // namespace percs::reference
