#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulator/base/random.h"
#include "emulator/routing/planner.h"
#include "tests/support/seed.h"
#include "tests/support/topologies.h"
#include "tests/unit/emulator/routing/table_walker.h"

namespace percs {
namespace {

using test::TableSet;
using test::TableWalker;
using ::testing::HasSubstr;

// Changes one table of one hub; tables are shared, so the hub gets its own copy.
template <typename Change>
void Corrupt(TableSet* tables, NodeId node, std::shared_ptr<const RouteTable> HubTables::*table,
             Change change) {
  HubTables hub = *(*tables)[node];
  RouteTable copy = *(hub.*table);
  change(&copy);
  hub.*table = std::make_shared<const RouteTable>(copy);
  (*tables)[node] = std::make_shared<const HubTables>(hub);
}

std::string Refusal(const Topology& topology, const Failures& failures, const TableSet& tables,
                    VcPolicy policy = VcPolicy::kPosition) {
  const auto report = CheckTables(topology, failures, tables, policy);
  EXPECT_EQ(report.status().code(), absl::StatusCode::kFailedPrecondition);
  return std::string(report.status().message());
}

TEST(CheckTables, PassesAWholeFabric) {
  const Topology topology = Make({3, 2, 4, 2});
  const auto report = CheckTables(topology, {}, Planner(topology).Plan({}), VcPolicy::kPosition);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->unreachable_pairs, 0u);
  EXPECT_EQ(report->hops_max, 3);
}

TEST(CheckTables, NamesTheWalkIntoAHole) {
  const Topology topology = Make({1, 1, 4, 1});
  TableSet tables = Planner(topology).Plan({});
  Corrupt(&tables, 1, &HubTables::source_direct, [](RouteTable* table) { table->intra[3] = 0; });
  EXPECT_EQ(Refusal(topology, {}, tables),
            "route tables: sn0-d0-h1 to sn0-d0-h3: sn0-d0-h1 has no route");
}

TEST(CheckTables, NamesTheWalkOverADeadLink) {
  const Topology topology = Make({1, 1, 4, 1});
  Failures failures;
  failures.links.insert({1, topology.LPort(1, 3)});
  EXPECT_EQ(Refusal(topology, failures, Planner(topology).Plan({})),
            "route tables: sn0-d0-h1 to sn0-d0-h3: sn0-d0-h1 would leave by sn0-d0-h1:LL2, which "
            "is not a live link");
}

TEST(CheckTables, NamesTheWalkThatRunsInALoop) {
  const Topology topology = Make({1, 1, 3, 1});
  TableSet tables = Planner(topology).Plan({});
  // 0 sends to 2 by way of 1, and 1 sends what comes from 0 back to 0.
  Corrupt(&tables, 0, &HubTables::source_direct,
          [&](RouteTable* table) { table->intra[2] = PortBit(topology.LPort(0, 1)); });
  for (const auto& [node, peer] : {std::pair<NodeId, NodeId>{0, 1}, {1, 0}}) {
    HubTables hub = *tables[node];
    auto back = std::make_shared<RouteTable>(*hub.port_direct[topology.LPort(node, peer)]);
    back->intra[2] = PortBit(topology.LPort(node, peer));
    hub.port_direct[topology.LPort(node, peer)] = back;
    tables[node] = std::make_shared<const HubTables>(hub);
  }
  EXPECT_EQ(Refusal(topology, {}, tables),
            "route tables: sn0-d0-h0 to sn0-d0-h2: sn0-d0-h0 > sn0-d0-h1 > sn0-d0-h0 > sn0-d0-h1 "
            "would leave by "
            "sn0-d0-h1:LL0, for which no VC position is left");
}

TEST(CheckTables, NamesAnUnusedEntryThatIsNoLiveLink) {
  const Topology topology = Make({2, 1, 2, 1});
  TableSet tables = Planner(topology).Plan({});
  Corrupt(&tables, 0, &HubTables::source_indirect,
          [](RouteTable* table) { table->inter[1] = PortBit(kDFirst + 9); });
  EXPECT_EQ(Refusal(topology, {}, tables),
            "route tables: a table of sn0-d0-h0 names sn0-d0-h0:D9, which is not a link");
}

TEST(CheckTables, RefusesTablesOfAnotherShape) {
  const Topology topology = Make({2, 1, 2, 1});
  TableSet tables = Planner(Make({2, 1, 3, 1})).Plan({});
  EXPECT_EQ(Refusal(topology, {}, tables),
            "route tables: there are tables for 6 nodes, but the topology has 4");
  tables.resize(4);
  EXPECT_EQ(
      Refusal(topology, {}, tables),
      "route tables: sn0-d0-h0 has a table that is missing or not of 2 hubs and 2 supernodes");
  tables[0] = nullptr;
  EXPECT_THAT(Refusal(topology, {}, tables), HasSubstr("missing"));
}

TEST(CheckTables, TellsTheShortestPathThatIsNotLegal) {
  const Topology topology = Make({5, 1, 1, 1});
  Failures failures;
  for (const LinkEnd& link : topology.Links()) {
    const NodeId peer = topology.Peer(link.node, link.port).node;
    if (peer != link.node + 1) failures.links.insert({link.node, link.port});
  }
  const auto report =
      CheckTables(topology, failures, Planner(topology).Plan(failures), VcPolicy::kPosition);
  ASSERT_TRUE(report.ok()) << report.status();
  // On a chain of five single-hub supernodes only two D hops are legal.
  EXPECT_EQ(report->unreachable_pairs, 6u);
  EXPECT_EQ(
      report->unreachable[0].witness,
      "no path fits L0 D0 L1 D1 L2; the shortest is sn0-d0-h0 > sn1-d0-h0 > sn2-d0-h0 > sn3-d0-h0");
}

TEST(CheckTables, OneVcForAllHasAChannelCycle) {
  const Topology topology = Make({3, 1, 4, 1});
  const TableSet tables = Planner(topology).Plan({});
  EXPECT_TRUE(CheckTables(topology, {}, tables, VcPolicy::kPosition).ok());
  const std::string message = Refusal(topology, {}, tables, VcPolicy::kSingle);
  const std::string prefix =
      "route tables: packets may wait for each other in a cycle of channels: ";
  ASSERT_EQ(message.substr(0, prefix.size()), prefix);
  // Every step of the witness leaves the hub at which the step before arrived, and it closes.
  std::vector<LinkEnd> cycle;
  std::string rest = message.substr(prefix.size());
  while (!rest.empty()) {
    const std::size_t end = rest.find(" VC0");
    ASSERT_NE(end, std::string::npos) << rest;
    const auto link = topology.ParseLink(rest.substr(0, end));
    ASSERT_TRUE(link.ok()) << link.status();
    cycle.push_back(*link);
    rest = rest.size() > end + 7 ? rest.substr(end + 7) : "";
  }
  ASSERT_GE(cycle.size(), 3u);
  EXPECT_EQ(cycle.front(), cycle.back());
  for (std::size_t i = 1; i < cycle.size(); ++i) {
    EXPECT_EQ(topology.Peer(cycle[i - 1].node, cycle[i - 1].port).node, cycle[i].node);
  }
}

TEST(CheckTables, OneSupernodeWithoutFailuresNeedsNoSecondVc) {
  const Topology topology = Make({1, 4, 8, 1});
  EXPECT_TRUE(CheckTables(topology, {}, Planner(topology).Plan({}), VcPolicy::kSingle).ok());
}

// Whatever entry is changed: if a walk suffers, the checker says so.
TEST(CheckTables, CatchesEveryHarmfulCorruption) {
  PERCS_TRACE_SEED();
  RandomStream random(test::Seed(), "check_tables");
  int harmful = 0;
  for (int round = 0; round < 600; ++round) {
    const Topology topology =
        Make({1 + static_cast<int>(random.Below(4)), 1 + static_cast<int>(random.Below(2)),
              2 + static_cast<int>(random.Below(3)), 1 + static_cast<int>(random.Below(3))});
    Failures failures;
    const std::vector<LinkEnd> links = topology.Links();
    const LinkEnd cut = links[random.Below(static_cast<std::uint32_t>(links.size()))];
    if (random.Below(2)) failures.links.insert({cut.node, cut.port});
    TableSet tables = Planner(topology).Plan(failures);
    const TableWalker walker(topology, failures);
    const auto missing = [&] {
      int count = 0;
      for (NodeId a = 0; a < topology.nodes(); ++a) {
        for (NodeId b = 0; b < topology.nodes(); ++b) count += walker.Walk(tables, a, b) < 0;
      }
      return count;
    };
    if (missing() > 0) continue;
    const NodeId node = random.Below(topology.nodes());
    HubTables hub = *tables[node];
    const std::uint32_t place = random.Below(kLinkPorts + 8);  // the source table rather often
    auto& slot = place < kLinkPorts ? hub.port_direct[place] : hub.source_direct;
    RouteTable changed = *slot;
    auto& entries = random.Below(2) ? changed.intra : changed.inter;
    PortMask& entry = entries[random.Below(static_cast<std::uint32_t>(entries.size()))];
    entry = random.Below(3) == 0 ? 0 : PortBit(static_cast<PortId>(random.Below(kLinkPorts)));
    slot = std::make_shared<const RouteTable>(changed);
    tables[node] = std::make_shared<const HubTables>(hub);
    if (missing() == 0) continue;
    ++harmful;
    EXPECT_FALSE(CheckTables(topology, failures, tables, VcPolicy::kPosition).ok());
  }
  EXPECT_GT(harmful, 50);
}

TEST(CheckTables, ProvesBladesAndCountsThoseCutOff) {
  TopologySpec spec{2, 1, 2, 1};
  spec.blades = {{"blade0", "sn0-d0-h1"}, {"blade1", "sn1-d0-h0"}, {"a", ""}, {"b", "a"}};
  const Topology topology = Make(spec);
  TableSet tables = Planner(topology).Plan({});
  const auto whole = CheckTables(topology, {}, tables, VcPolicy::kPosition);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(whole->unreachable_pairs, 0u);

  const LinkEnd socket = topology.BladePeer(4);
  Failures failures;
  failures.links.insert({socket.node, socket.port});
  EXPECT_EQ(Refusal(topology, failures, tables),
            "route tables: blade0 must send everything nowhere, because its link is down, but a "
            "table says otherwise");
  const auto cut =
      CheckTables(topology, failures, Planner(topology).Plan(failures), VcPolicy::kPosition);
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_EQ(cut->unreachable_pairs, 2u * 5);  // blade0 with four hubs and blade1

  HubTables hub = *tables[socket.node];
  auto other = std::make_shared<RouteTable>(*hub.source_direct);
  other->intra[0] = 0;
  hub.port_direct[socket.port] = other;
  tables[socket.node] = std::make_shared<const HubTables>(hub);
  EXPECT_EQ(Refusal(topology, {}, tables),
            "route tables: the table of sn0-d0-h1:D0 differs from the source table of sn0-d0-h1, "
            "where packets from blade0 start");
}

}  // namespace
}  // namespace percs
