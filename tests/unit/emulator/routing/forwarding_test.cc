// Forwarding tables of the InfiniBand tree: plans around failures are proven by following the
// cables, spoiled tables are refused by name, and bytes are read back.
#include "emulator/routing/forwarding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "emulator/base/random.h"
#include "tests/support/seed.h"

namespace percs {
namespace {

using roadrunner::kCrossbarsPerSwitch;
using ::testing::HasSubstr;

constexpr PortId kSpine0 = kIbFirst + 12;  // of a leaf

// A drawer of four hubs with the gateway at hub 1, and a triblade at each of these places: node 4 +
// i.
Topology Machine(int cus, const std::vector<std::string>& places) {
  TopologySpec spec{1, 1, 4, 1};
  spec.infiniband = InfinibandSpec{cus, "sn0-d0-h1"};
  for (std::size_t i = 0; i < places.size(); ++i)
    spec.blades.push_back({"triblade" + std::to_string(i), places[i]});
  auto topology = Topology::Create(spec);
  EXPECT_TRUE(topology.ok()) << topology.status();
  return *std::move(topology);
}

Topology FourLeaves() { return Machine(1, {"cu0-leaf0", "cu0-leaf1", "cu0-leaf2", "cu0-leaf3"}); }

Failures Without(const Topology& topology, const std::vector<std::string>& links) {
  Failures failures;
  for (const std::string& name : links) {
    const auto end = topology.ParseLink(name);
    EXPECT_TRUE(end.ok()) << end.status();
    const LinkEnd far = topology.Peer(end->node, end->port);
    failures.links.insert(std::min(std::pair(end->node, end->port), std::pair(far.node, far.port)));
  }
  return failures;
}

absl::StatusOr<CheckReport> CheckedByPosition(const Topology& topology, const Failures& failures,
                                              const TableSet& tables) {
  return CheckTables(topology, failures, tables, VcPolicy::kPosition);
}

std::string ForwardingRefusal(const Topology& topology, const TableSet& tables,
                              const Failures& failures = {}) {
  const auto report = CheckedByPosition(topology, failures, tables);
  EXPECT_EQ(report.status().code(), absl::StatusCode::kFailedPrecondition);
  return std::string(report.status().message());
}

// The table of a node says `port` for a triblade; the gateway is endpoint 0.
void Set(const Topology& topology, TableSet* tables, const std::string& node, int triblade,
         PortId port) {
  const NodeId at = *topology.ParseNode(node);
  HubTables changed = *(*tables)[at];
  changed.forwarding[static_cast<std::size_t>(triblade + 1)] = port;
  (*tables)[at] = std::make_shared<const HubTables>(std::move(changed));
}

TEST(Forwarding, NoSingleCableBetweenCrossbarsCostsAPair) {
  const Topology topology =
      Machine(2, {"cu0-leaf0", "cu0-leaf1", "cu0-leaf9", "cu1-leaf0", "cu1-leaf3"});
  Planner planner(topology);
  int cables = 0;
  for (const LinkEnd& link : topology.Links()) {
    const LinkEnd far = topology.Peer(link.node, link.port);
    if (!topology.is_crossbar(link.node) || !topology.is_crossbar(far.node)) continue;
    if (++cables % 7 != 0) continue;  // a sample of them, from all stages
    Failures failures;
    failures.links = {{link.node, link.port}};
    const auto report = CheckedByPosition(topology, failures, planner.Replan(failures));
    ASSERT_TRUE(report.ok()) << topology.LinkName(link) << ": " << report.status();
    EXPECT_EQ(report->unreachable_pairs, 0u) << topology.LinkName(link);
  }
  // 24 x 12 and 24 x 4 to the other switches in each CU; 8 switches of 12 + 12 times 12.
  EXPECT_EQ(cables, 2 * (24 * 12 + 24 * 4) + 8 * 24 * 12);
}

TEST(Forwarding, PlansAroundRandomFailuresAreProvenAndEqualHoweverTheyCameAbout) {
  PERCS_TRACE_SEED();
  RandomStream random(test::Seed(), "forwarding");
  const Topology topology =
      Machine(2, {"cu0-leaf0", "cu0-leaf0", "cu0-leaf1", "cu1-leaf0", "cu1-leaf23", "sn0-d0-h3"});
  const std::vector<LinkEnd> links = topology.Links();
  Planner replanner(topology);
  Failures failures;
  std::uint64_t most_unreachable = 0;
  for (int round = 0; round < 40; ++round) {
    for (std::uint32_t n = random.Below(120); n > 0; --n) {
      const LinkEnd link = links[random.Below(static_cast<std::uint32_t>(links.size()))];
      if (topology.is_blade(topology.Peer(link.node, link.port).node) && random.Below(4) > 0)
        continue;
      if (failures.links.erase({link.node, link.port}) == 0)
        failures.links.insert({link.node, link.port});
    }
    const NodeId crossbar =
        topology.crossbar_node(static_cast<int>(random.Below(topology.crossbars())));
    if (failures.hubs.erase(crossbar) == 0) failures.hubs.insert(crossbar);
    const TableSet& tables = replanner.Replan(failures);
    const auto report = CheckedByPosition(topology, failures, tables);
    ASSERT_TRUE(report.ok()) << report.status();
    most_unreachable = std::max(most_unreachable, report->unreachable_pairs);
    const TableSet fresh = Planner(topology).Plan(failures);
    for (NodeId node = 0; node < topology.nodes(); ++node) {
      ASSERT_EQ(tables[node]->Hash(), fresh[node]->Hash()) << topology.NodeName(node);
    }
  }
  EXPECT_GT(most_unreachable, 0u) << "or it was too easy";
}

TEST(Forwarding, TheLeafsOfCutOffTribladesAreNamed) {
  const Topology topology = FourLeaves();
  const Failures failures = Without(topology, {"triblade1:N0"});
  const auto report = CheckedByPosition(topology, failures, Planner(topology).Plan(failures));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->unreachable_pairs, 2u * 4) << "from and to three triblades and the gateway";
  ASSERT_EQ(report->unreachable.size(), 2u * 3);
  EXPECT_EQ(topology.NodeName(report->unreachable[0].source), "triblade0");
  EXPECT_EQ(topology.NodeName(report->unreachable[0].destination), "triblade1");
}

TEST(Forwarding, AWalkIntoAHoleOverADeadCableOrInCirclesIsNamed) {
  const Topology topology = FourLeaves();
  const TableSet good = Planner(topology).Plan({});
  TableSet tables = good;
  Set(topology, &tables, "cu0-spine8", 1, kNoPort);  // triblade1 is in place 8
  EXPECT_EQ(ForwardingRefusal(topology, tables),
            "forwarding tables: cu0-leaf23 > cu0-spine8 > nothing, on the way to triblade1");

  EXPECT_EQ(
      ForwardingRefusal(topology, good, Without(topology, {"cu0-spine8:p1"})),
      "forwarding tables: cu0-leaf23 > cu0-spine8 > cu0-spine8:p1, which is not a live cable, "
      "on the way to "
      "triblade1");

  tables = good;
  Set(topology, &tables, "cu0-leaf2", 1, kIbFirst);
  EXPECT_EQ(ForwardingRefusal(topology, tables),
            "forwarding tables: cu0-leaf2 > triblade2, on the way to triblade1");

  tables = good;
  Set(topology, &tables, "cu0-spine8", 1, kIbFirst);
  EXPECT_THAT(ForwardingRefusal(topology, tables),
              HasSubstr("> more than 7 crossbars, on the way to triblade1"));

  tables = good;
  Set(topology, &tables, "triblade0", 2, kNoPort);
  EXPECT_EQ(
      ForwardingRefusal(topology, tables),
      "forwarding tables: triblade2 can be reached from triblade0, whose table says otherwise");

  tables = good;
  HubTables cut = *tables[*topology.ParseNode("cu0-leaf5")];
  cut.forwarding.pop_back();
  tables[*topology.ParseNode("cu0-leaf5")] = std::make_shared<const HubTables>(std::move(cut));
  EXPECT_EQ(ForwardingRefusal(topology, tables),
            "forwarding tables: cu0-leaf5 has no table of 5 endpoints");
}

// Every packet arrives, but down and up again over leaves that are not its own.
TEST(Forwarding, ACycleOfCablesIsNamedEvenIfEveryPacketArrives) {
  const Topology topology = FourLeaves();
  TableSet tables = Planner(topology).Plan({});
  // To triblade 1: leaf 0, spine 0, leaf 2, spine 1, leaf 1.
  Set(topology, &tables, "cu0-leaf0", 1, kSpine0);
  Set(topology, &tables, "cu0-spine0", 1, kIbFirst + 2);
  Set(topology, &tables, "cu0-leaf2", 1, kSpine0 + 1);
  Set(topology, &tables, "cu0-spine1", 1, kIbFirst + 1);
  // To triblade 3: leaf 2, spine 1, leaf 1, spine 0, leaf 3.
  Set(topology, &tables, "cu0-leaf2", 3, kSpine0 + 1);
  Set(topology, &tables, "cu0-spine1", 3, kIbFirst + 1);
  Set(topology, &tables, "cu0-leaf1", 3, kSpine0);
  Set(topology, &tables, "cu0-spine0", 3, kIbFirst + 3);
  ASSERT_TRUE(CheckedByPosition(topology, {}, tables).ok()) << "no cycle yet";
  // To triblade 2: leaf 1, spine 0, leaf 2.
  Set(topology, &tables, "cu0-leaf1", 2, kSpine0);
  Set(topology, &tables, "cu0-spine0", 2, kIbFirst + 2);
  const std::string refusal = ForwardingRefusal(topology, tables);
  EXPECT_THAT(refusal, HasSubstr("packets may wait for each other in a cycle of links: "));
  for (const char* link : {"cu0-leaf1:p13", "cu0-leaf2:p12", "cu0-spine0:p1", "cu0-spine1:p2"}) {
    EXPECT_THAT(refusal, HasSubstr(link));
  }
}

TEST(Forwarding, TablesAreReadBackEqualAndMalformedOnesRefused) {
  const Topology topology = Machine(2, {"cu0-leaf0", "cu1-leaf1"});
  const TableSet tables = Planner(topology).Plan({});
  const auto parse = [](const std::string& text) {
    return HubTables::Parse({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  };
  for (const char* name : {"cu0-leaf0", "cu1-spine3", "sw4-b2", "triblade0"}) {
    const HubTables& table = *tables[*topology.ParseNode(name)];
    const std::string bytes = table.Serialize();
    const auto parsed = parse(bytes);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->forwarding, table.forwarding);
    EXPECT_EQ(parsed->Hash(), table.Hash());
    EXPECT_THAT(std::string(parse(bytes.substr(0, bytes.size() - 1)).status().message()),
                HasSubstr("truncated"));
    EXPECT_THAT(std::string(parse(bytes + "F").status().message()),
                HasSubstr("bytes after the end"));
    std::string wrong = bytes;
    wrong.back() = static_cast<char>(kHfiFirst);
    EXPECT_THAT(std::string(parse(wrong).status().message()),
                HasSubstr("names a port that is not a link"));
  }
}

}  // namespace
}  // namespace percs
