#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulator/routing/planner.h"

namespace percs {
namespace {

using ::testing::HasSubstr;

// A changed copy of one table of one hub.
template <typename Change>
std::shared_ptr<const RouteTable> Changed(const std::shared_ptr<const RouteTable>& table,
                                          Change change) {
  auto copy = std::make_shared<RouteTable>(*table);
  change(copy.get());
  return copy;
}

class CheckIndirect : public testing::Test {
 protected:
  CheckIndirect() : tables_(Planner(topology_).Plan({})) {}
  HubTables& Edit(NodeId node) {
    auto copy = std::make_shared<HubTables>(*tables_[node]);
    tables_[node] = copy;
    return *copy;
  }
  std::string Refusal() {
    const auto report = CheckTables(topology_, {}, tables_, VcPolicy::kPosition);
    EXPECT_EQ(report.status().code(), absl::StatusCode::kFailedPrecondition);
    return std::string(report.status().message());
  }
  NodeId Exit(int from, int to) const {
    return topology_.node(from, std::countr_zero(topology_.ExitHubs(from, to)));
  }

  const Topology topology_ = Topology::Create({4, 1, 4, 1}).value();
  TableSet tables_;
};

TEST_F(CheckIndirect, APlannedSetPassesWithFiveHops) {
  const auto report = CheckTables(topology_, {}, tables_, VcPolicy::kPosition);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->hops_max, 3);
  EXPECT_EQ(report->indirect_hops_max, 5);
}

TEST_F(CheckIndirect, NamesTheHoleOfTheSecondHalf) {
  const NodeId landing =
      topology_
          .Peer(Exit(0, 1), static_cast<PortId>(std::countr_zero(topology_.DPorts(Exit(0, 1), 1))))
          .node;
  HubTables& hub = Edit(landing);
  for (int p = kDFirst; p < kHfiFirst; ++p) {
    hub.port_indirect[p] =
        Changed(hub.port_indirect[p], [](RouteTable* table) { table->inter[2] = 0; });
  }
  EXPECT_THAT(Refusal(), testing::AllOf(HasSubstr("over supernode 1"), HasSubstr("has no route")));
}

TEST_F(CheckIndirect, AMiddleThatIsClosedNeedsNoWayOn) {
  const NodeId exit = Exit(1, 2);
  HubTables& hub = Edit(exit);
  for (auto& table : hub.port_indirect) {
    table = Changed(table, [](RouteTable* t) { t->inter[2] = 0; });
  }
  EXPECT_THAT(Refusal(), HasSubstr("over supernode 1"));
  for (NodeId node = 0; node < topology_.nodes(); ++node) {
    Edit(node).closed_middles = {HubTables::ClosedMiddle(2, 1)};
  }
  // Packets of supernode 1 itself start at source tables, and pass this hub only on their way out.
  HubTables& again = Edit(exit);
  for (int p = 0; p < kDFirst; ++p) {
    again.port_indirect[p] = Changed(
        again.port_indirect[p], [&](RouteTable* t) { t->inter[2] = topology_.DPorts(exit, 2); });
  }
  const auto report = CheckTables(topology_, {}, tables_, VcPolicy::kPosition);
  EXPECT_TRUE(report.ok()) << report.status();
}

TEST_F(CheckIndirect, ASecondLHopInTheMiddleSupernodeIsRefused) {
  // Whoever lands in supernode 1 is sent to the next hub, and that one sends it on inside.
  for (int h = 0; h < 4; ++h) {
    const NodeId node = topology_.node(1, h), next = topology_.node(1, (h + 1) % 4);
    HubTables& hub = Edit(node);
    for (auto& table : hub.port_indirect) {
      table = Changed(table,
                      [&](RouteTable* t) { t->inter[3] = PortBit(topology_.LPort(node, next)); });
    }
  }
  EXPECT_THAT(Refusal(), HasSubstr("no VC position is left"));
}

TEST_F(CheckIndirect, AStripedEntryThatLeadsAstrayIsRefused) {
  HubTables& hub = Edit(0);
  hub.source_striped = Changed(hub.source_striped, [&](RouteTable* t) { t->inter[2] = 0; });
  EXPECT_THAT(Refusal(), testing::AllOf(HasSubstr("striped"), HasSubstr("has no route")));
}

TEST_F(CheckIndirect, AMissingStripedTableIsRefused) {
  Edit(3).source_striped = nullptr;
  EXPECT_THAT(Refusal(), HasSubstr("sn0-d0-h3 has a table that is missing"));
}

}  // namespace
}  // namespace percs
