// What is checked at the end of every run. Method: each checker must be content with a right run
// and name the fault of a wrong one: results spoiled by hand, and flits spoiled on their way
// between two processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/split_run.h"

namespace percs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// One packet of 16 flits from node 0 to node 1, as its two hubs would count it.
class MergeCheckTest : public ::testing::Test {
 protected:
  MergeCheckTest() : nodes_(2) {
    nodes_[1].node = 1;
    nodes_[0].stats.packets_created = 1;
    nodes_[0].stats.flits_created = 16;
    nodes_[1].stats.packets_delivered = 1;
    nodes_[1].stats.flits_delivered = 16;
  }
  std::vector<std::string> Violations() const {
    return MergeResults(scenario_, topology_, nodes_, {}, 1).violations;
  }
  Scenario scenario_;
  Topology topology_ = *Topology::Create({.supernodes = 1, .drawers = 1, .hubs = 2});
  std::vector<NodeResult> nodes_;
};

TEST_F(MergeCheckTest, ARightRunHasNoViolation) { EXPECT_THAT(Violations(), IsEmpty()); }

TEST_F(MergeCheckTest, ALostFlitIsNamed) {
  --nodes_[1].stats.flits_delivered;
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("conservation of flits: 16 created")));
}

TEST_F(MergeCheckTest, AnInventedPacketIsNamedAlsoInARunCutShort) {
  ++nodes_[1].stats.packets_delivered;
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("conservation of packets: 1 created")));
  scenario_.stop_at = kMicrosecond;
  EXPECT_THAT(Violations(), ElementsAre(HasSubstr("conservation of packets: 1 created")));
}

TEST_F(MergeCheckTest, AMissingCreditIsNamedWithItsHub) {
  nodes_[1].credits_missing = 3;
  EXPECT_THAT(Violations(), ElementsAre("conservation of credits: sn0-d0-h1 is off by 3"));
}

TEST_F(MergeCheckTest, AWrongPayloadIsNamed) {
  nodes_[1].stats.payload_errors = 2;
  EXPECT_THAT(Violations(), ElementsAre("payload: 2 packets arrived with wrong bytes"));
}

TEST_F(MergeCheckTest, FlitsOutOfOrderAndVcsOutOfPlaceAreNamedWithTheirHub) {
  nodes_[0].flits_out_of_order = 1;
  nodes_[1].vcs_out_of_place = 2;
  EXPECT_THAT(Violations(),
              UnorderedElementsAre(
                  "order of flits: 1 runs of flits reached sn0-d0-h0 out of order within a packet",
                  "VC positions: 2 packets reached sn0-d0-h1 on a VC of the wrong position"));
}

// Every link crosses between two processes; `spoil` changes one run of flits on its way.
class SpoiledRunTest : public ::testing::Test {
 protected:
  std::vector<std::string> Violations(const std::function<bool(FlitRun&)>& spoil) {
    return ViolationsOfBatches(
        [&spoil](Outbox& box) { return std::any_of(box.flits.begin(), box.flits.end(), spoil); });
  }
  // The same for `spoil` of everything that crosses in one window, until it returns true.
  std::vector<std::string> ViolationsOfBatches(const std::function<bool(Outbox&)>& spoil) {
    Scenario scenario;
    scenario.topology = {.supernodes = 2, .drawers = 1, .hubs = 2};
    scenario.parameters.ll.buffer_flits = 8;  // a packet of 16 flits crosses in several runs ...
    PatternWorkload uniform;
    uniform.load = 0.2;
    uniform.message_bytes = 2148;  // ... followed by one of a single flit
    uniform.count = 20;
    scenario.workload = uniform;
    bool done = false;
    test::SplitOptions options;
    options.processes = 2;
    options.reaches_far = false;  // what crosses first does not depend on chance
    // Both LL links and the D link, between nodes 0 and 2, cross.
    options.process_of = [](NodeId node) { return node == 0 || node == 3 ? 0 : 1; };
    options.tamper = [&](int, int, Outbox& box) {
      if (!done) done = spoil(box);
    };
    const auto result = test::SplitRun(scenario, options);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? result->violations : std::vector<std::string>();
  }
};

TEST_F(SpoiledRunTest, ARightRunHasNoViolation) {
  EXPECT_THAT(Violations([](FlitRun&) { return false; }), IsEmpty());
}

TEST_F(SpoiledRunTest, FlitsThatComeInTheWrongOrderAreSeen) {
  EXPECT_THAT(Violations([](FlitRun& run) { return run.first > 1 && --run.first > 0; }),
              ElementsAre(HasSubstr("order of flits: 1 runs")));
}

TEST_F(SpoiledRunTest, ATailThatComesTooEarlyIsSeen) {
  // On a D link, whose buffers hold a packet even with one credit lost.
  EXPECT_THAT(Violations([](FlitRun& run) {
                return IsD(run.port) && run.tail && run.count > 2 && --run.count > 0;
              }),
              testing::Contains(HasSubstr("order of flits: 1 runs")));
}

TEST_F(SpoiledRunTest, FlitsWithoutCreditAreSeenAndHarmNothingElse) {
  EXPECT_THAT(ViolationsOfBatches([](Outbox& box) {
                // A buffer full of flits twice: the second time there is no slot for them.
                const auto full = std::find_if(
                    box.flits.begin(), box.flits.end(),
                    [](const FlitRun& run) { return !IsD(run.port) && run.count == 8; });
                if (full == box.flits.end()) return false;
                const FlitRun copy = *full;
                box.flits.insert(full, copy);
                return true;
              }),
              ElementsAre("credits: 1 runs of flits reached sn0-d0-h0 without credits"));
}

TEST_F(SpoiledRunTest, AVcOutOfItsPlaceIsSeen) {
  EXPECT_THAT(Violations([](FlitRun& run) {
                // A whole packet, so that no later run looks for it on the right VC.
                if (run.first != 0 || !run.tail || !IsD(run.port)) return false;
                run.vc = static_cast<VcId>(1 - run.vc);
                return true;
              }),
              testing::Contains(HasSubstr("VC positions: 1 packets")));
}

}  // namespace
}  // namespace percs
