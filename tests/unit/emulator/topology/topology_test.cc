#include "emulator/topology/topology.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>

#include "emulator/topology/find_names.h"

namespace percs {
namespace {

Topology MakeOf(int supernodes, int drawers, int hubs, int links = 1) {
  auto topology = Topology::Create({supernodes, drawers, hubs, links});
  EXPECT_TRUE(topology.ok()) << topology.status();
  return *topology;
}

std::string SpecRefusal(const TopologySpec& spec) {
  const auto topology = Topology::Create(spec);
  EXPECT_EQ(topology.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(topology.status().message());
}

std::vector<TopologySpec> ManyShapes() {
  std::vector<TopologySpec> shapes;
  for (int supernodes : {1, 2, 3, 4, 5, 6, 9, 17, 33}) {
    for (int drawers = 1; drawers <= 4; ++drawers) {
      for (int hubs : {1, 2, 3, 5, 8}) {
        if (supernodes * drawers * hubs < 2) continue;
        for (int links : {1, 2, 3, 7, 16, 100, 512}) {
          if (links * (supernodes - 1) <= kDPorts * drawers * hubs)
            shapes.push_back({supernodes, drawers, hubs, links});
        }
      }
    }
  }
  return shapes;
}

TEST(Topology, EveryLinkHasTwoEndsThatAgree) {
  for (const TopologySpec& spec : ManyShapes()) {
    const auto topology = Topology::Create(spec);
    ASSERT_TRUE(topology.ok()) << topology.status();
    for (NodeId node = 0; node < topology->nodes(); ++node) {
      for (int p = 0; p < kPorts; ++p) {
        const LinkEnd end{node, static_cast<PortId>(p)};
        const LinkEnd peer = topology->Peer(end.node, end.port);
        if (peer.node == kNoNode) continue;
        ASSERT_NE(peer.node, node);
        ASSERT_EQ(ClassOf(peer.port), ClassOf(end.port));
        ASSERT_EQ(topology->Peer(peer.node, peer.port), end) << topology->LinkName(end);
      }
    }
  }
}

TEST(Topology, ShapeHasAllLinksOfTheTwoLevels) {
  for (const TopologySpec& spec : ManyShapes()) {
    const auto topology = Topology::Create(spec);
    ASSERT_TRUE(topology.ok());
    const std::size_t hubs = static_cast<std::size_t>(topology->hubs_per_supernode());
    const std::size_t supernodes = static_cast<std::size_t>(spec.supernodes);
    EXPECT_EQ(topology->Links().size(),
              supernodes * hubs * (hubs - 1) / 2 + static_cast<std::size_t>(spec.d_links_per_pair) *
                                                       supernodes * (supernodes - 1) / 2);
    for (NodeId a = 0; a < topology->nodes(); ++a) {
      for (NodeId b = 0; b < topology->nodes(); ++b) {
        if (a == b || topology->supernode_of(a) != topology->supernode_of(b)) continue;
        ASSERT_EQ(topology->Peer(a, topology->LPort(a, b)).node, b);
      }
    }
  }
}

TEST(Topology, DPortsAndExitHubsAgreeWithPeer) {
  for (const TopologySpec& spec : ManyShapes()) {
    const auto topology = Topology::Create(spec);
    ASSERT_TRUE(topology.ok());
    int most = 0, least = kDPorts;
    for (NodeId node = 0; node < topology->nodes(); ++node) {
      std::vector<PortMask> expected(static_cast<std::size_t>(spec.supernodes));
      int used = 0;
      for (int p = kDFirst; p < kHfiFirst; ++p) {
        const int behind = topology->SupernodeBehind(node, static_cast<PortId>(p));
        if (behind < 0) continue;
        ++used;
        expected[static_cast<std::size_t>(behind)] |= PortBit(static_cast<PortId>(p));
      }
      most = std::max(most, used);
      least = std::min(least, used);
      for (int to = 0; to < spec.supernodes; ++to) {
        if (to == topology->supernode_of(node)) continue;
        const PortMask ports = topology->DPorts(node, to);
        ASSERT_EQ(ports, expected[static_cast<std::size_t>(to)]);
        const bool exit = topology->ExitHubs(topology->supernode_of(node), to) >>
                              topology->hub_in_supernode(node) &
                          1;
        ASSERT_EQ(exit, ports != 0);
      }
    }
    EXPECT_LE(most - least, 1) << "D links are spread unevenly";
  }
}

TEST(Topology, LargestMachineUsesEveryDPort) {
  const Topology topology = MakeOf(513, 4, 8);
  EXPECT_EQ(topology.nodes(), 16416u);
  for (NodeId node = 0; node < topology.nodes(); ++node) {
    for (int p = 0; p < kLinkPorts; ++p)
      ASSERT_TRUE(topology.connected(node, static_cast<PortId>(p)));
    ASSERT_FALSE(topology.connected(node, kHfiFirst));
  }
}

TEST(Topology, PortNumbersFollowTheRule) {
  const Topology topology = MakeOf(4, 4, 8);
  const auto node = [&](int sn, int drawer, int hub) {
    return topology.node(sn, drawer * 8 + hub);
  };
  EXPECT_EQ(topology.LPort(node(0, 1, 3), node(0, 1, 0)), kLlFirst + 0);
  EXPECT_EQ(topology.LPort(node(0, 1, 3), node(0, 1, 4)), kLlFirst + 3);
  EXPECT_EQ(topology.LPort(node(0, 1, 3), node(0, 0, 2)), kLrFirst + 2);
  EXPECT_EQ(topology.LPort(node(0, 1, 3), node(0, 3, 7)), kLrFirst + 23);
  // 0 -> 1: distance 1, slot 0 on 0 and slot 4 - 1 - 1 = 2 on 1.
  EXPECT_EQ(topology.Peer(node(0, 0, 0), kDFirst), (LinkEnd{node(1, 0, 2), kDFirst}));
  // 1 -> 3: distance 2, which is half of 4: the same slot on both sides.
  EXPECT_EQ(topology.Peer(node(1, 0, 1), kDFirst), (LinkEnd{node(3, 0, 1), kDFirst}));
  // Fewer hubs per drawer leave gaps in LR numbers, so a name means the same on every shape.
  const Topology narrow = MakeOf(1, 3, 2);
  EXPECT_EQ(narrow.LPort(0, 2), kLrFirst + 0);
  EXPECT_EQ(narrow.LPort(0, 4), kLrFirst + 8);
}

TEST(Topology, RefusesWhatDoesNotFitAndShowsTheArithmetic) {
  EXPECT_EQ(SpecRefusal({514, 4, 8, 1}), "topology.supernodes: 514 is outside 1..513");
  EXPECT_EQ(SpecRefusal({2, 5, 8, 1}), "topology.drawers: 5 is outside 1..4");
  EXPECT_EQ(SpecRefusal({2, 4, 9, 1}), "topology.hubs: 9 is outside 1..8");
  EXPECT_EQ(SpecRefusal({1, 1, 1, 1}),
            "topology: 1 supernode x 1 drawer x 1 hub is a single hub; a network needs at least 2");
  EXPECT_EQ(SpecRefusal({3, 4, 8, 0}),
            "topology.d_links_per_pair: 0 leaves 3 supernodes without a link between them; at "
            "least 1 is needed");
  EXPECT_EQ(SpecRefusal({513, 4, 8, 2}),
            "topology: 2 D links per pair x 512 other supernodes = 1024 D ports per supernode, but "
            "4 drawers x 8 hubs x "
            "16 D ports = 512; at most 1 link per pair fit");
  EXPECT_EQ(SpecRefusal({40, 1, 2, 1}),
            "topology: 1 D link per pair x 39 other supernodes = 39 D ports per supernode, but 1 "
            "drawer x 2 hubs x 16 D "
            "ports = 32; at most 33 supernodes fit");
}

TEST(Topology, NamesReadBack) {
  const Topology topology = MakeOf(3, 2, 4, 5);
  for (NodeId node = 0; node < topology.nodes(); ++node) {
    const auto parsed = topology.ParseNode(topology.NodeName(node));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, node);
  }
  for (const LinkEnd& end : topology.Links()) {
    const LinkEnd peer = topology.Peer(end.node, end.port);
    for (const LinkEnd& side : {end, peer}) {
      const auto parsed = topology.ParseLink(topology.LinkName(side));
      ASSERT_TRUE(parsed.ok()) << parsed.status();
      EXPECT_EQ(*parsed, side);
    }
  }
  EXPECT_EQ(topology.LinkName({0, kHfiFirst + 7}), "sn0-d0-h0:HFI7");
  EXPECT_EQ(topology.LinkName({9, kDFirst + 5}), "sn1-d0-h1:D5");
  const auto ends = topology.ParseLink("sn0-d1-h3/sn0-d0-h2");
  ASSERT_TRUE(ends.ok()) << ends.status();
  EXPECT_EQ(topology.LinkName(*ends), "sn0-d1-h3:LR2");
}

TEST(Topology, UnknownNamesGetTheNearestOnes) {
  const Topology topology = MakeOf(2, 2, 2, 3);
  const auto message = [](const auto& result) { return std::string(result.status().message()); };
  EXPECT_EQ(message(topology.ParseNode("sn0-d1-h7")),
            "no hub is named \"sn0-d1-h7\"; the nearest are sn0-d1-h0, sn0-d1-h1 or sn0-d0-h0");
  for (const char* bad : {"", "sn0", "sn0-d0", "sn0-d0-h", "sn0-d0-h00", "sn-0-d0-h0", "sn0-d0-h0 ",
                          "sn0-d0-h99999999999999"}) {
    EXPECT_EQ(topology.ParseNode(bad).status().code(), absl::StatusCode::kNotFound) << bad;
  }
  EXPECT_EQ(message(topology.ParseLink("sn0-d0-h0:LR3")),
            "no link is named \"sn0-d0-h0:LR3\"; the nearest are sn0-d0-h0:LR0, sn0-d0-h0:LR1 or "
            "sn0-d0-h0:LL0");
  EXPECT_EQ(message(topology.ParseLink("sn0-d0-h0:HFI0")),
            "no link is named \"sn0-d0-h0:HFI0\"; the nearest are sn0-d0-h0:LL0, sn0-d0-h0:LR0 or "
            "sn0-d0-h0:D0");
  EXPECT_EQ(message(topology.ParseLink("cable")),
            "\"cable\" is not a link name; write a link as sn0-d0-h0:LL0 or by its two ends, "
            "sn0-d0-h0/sn0-d0-h1");
  EXPECT_EQ(message(topology.ParseLink("sn0-d0-h0/sn1-d1-h1")),
            "no link joins sn0-d0-h0 and sn1-d1-h1; the nearest are sn0-d0-h0/sn0-d1-h1, "
            "sn0-d0-h0/sn0-d0-h1 or "
            "sn0-d0-h0/sn0-d1-h0");
  const Topology parallel = MakeOf(2, 1, 1, 3);
  EXPECT_EQ(message(parallel.ParseLink("sn0-d0-h0/sn1-d0-h0")),
            "\"sn0-d0-h0/sn1-d0-h0\" names 3 parallel links; write one of sn0-d0-h0:D0, "
            "sn0-d0-h0:D1, sn0-d0-h0:D2");
}

TEST(Topology, GroupsOfHubsHaveNamesOfTheirOwn) {
  const Topology topology = MakeOf(2, 2, 3, 1);
  using Hubs = std::vector<NodeId>;
  EXPECT_EQ(HubsNamed(topology, "all").size(), 12u);
  EXPECT_EQ(HubsNamed(topology, "sn1"), (Hubs{6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(HubsNamed(topology, "sn0-d1"), (Hubs{3, 4, 5}));
  EXPECT_EQ(HubsNamed(topology, "sn1-d1-h2"), Hubs{11});
  for (const char* none :
       {"", "sn", "sn2", "sn0-", "sn0-d2", "sn0-d1-", "sn0-d1-h3", "sn0-d1-h2x", "sn01", "All"}) {
    EXPECT_EQ(HubsNamed(topology, none), Hubs{}) << none;
  }
}

TopologySpec WithBlades(TopologySpec spec, std::vector<BladeSite> blades) {
  spec.blades = std::move(blades);
  return spec;
}

TEST(TopologyBlades, HangOnTheLowestFreeDPortsBehindAllHubs) {
  // 2 supernodes of 1 hub, 3 D links between them: D0..D2 are taken.
  const auto topology = Topology::Create(WithBlades(
      {2, 1, 1, 3}, {{"blade0", "sn1-d0-h0"}, {"blade1", "sn1-d0-h0"}, {"x", "sn0-d0-h0"}}));
  ASSERT_TRUE(topology.ok()) << topology.status();
  EXPECT_EQ(topology->hubs(), 2u);
  EXPECT_EQ(topology->nodes(), 5u);
  EXPECT_EQ(topology->NodeName(3), "blade1");
  EXPECT_EQ(topology->LinkName({3, kBladePort}), "blade1:N0");
  EXPECT_EQ(topology->LinkName(topology->Peer(3, kBladePort)), "sn1-d0-h0:D4");
  for (NodeId node = 0; node < topology->nodes(); ++node) {
    for (PortId port = 0; port < kLinkPorts; ++port) {
      const LinkEnd peer = topology->Peer(node, port);
      if (peer.node == kNoNode) continue;
      EXPECT_EQ(topology->Peer(peer.node, peer.port), (LinkEnd{node, port}));
    }
  }
  EXPECT_EQ(topology->Links().size(), 3u + 3u);
  EXPECT_EQ(topology->SupernodeBehind(1, kDFirst + 3), -1);
  EXPECT_EQ(topology->ExitHub(4), 0u);
  EXPECT_EQ(*topology->ParseNode("x"), 4u);
  EXPECT_EQ(*topology->ParseLink("blade0/sn1-d0-h0"), (LinkEnd{2, kBladePort}));
  EXPECT_EQ(*topology->ParseLink("sn1-d0-h0:D3"), (LinkEnd{1, kDFirst + 3}));
}

TEST(TopologyBlades, AreJoinedToEachOtherWithoutAHub) {
  const auto topology =
      Topology::Create(WithBlades({1, 1, 1, 1}, {{"a", ""}, {"b", "a"}, {"alone", ""}}));
  ASSERT_TRUE(topology.ok()) << topology.status();
  EXPECT_EQ(topology->Peer(1, kBladePort), (LinkEnd{2, kBladePort}));
  EXPECT_EQ(topology->Peer(2, kBladePort), (LinkEnd{1, kBladePort}));
  EXPECT_EQ(topology->ExitHub(1), kNoNode);
  EXPECT_FALSE(topology->connected(3, kBladePort));
  EXPECT_EQ(topology->Links().size(), 1u);
}

TEST(TopologyBlades, ThatFitNowhereAreRefusedWithTheReason) {
  std::vector<BladeSite> many;
  for (int i = 0; i < 14; ++i) many.push_back({"blade" + std::to_string(i), "sn0-d0-h0"});
  EXPECT_EQ(
      SpecRefusal(WithBlades({2, 1, 1, 3}, many)),
      "sn0-d0-h0 has 16 D ports: 3 carry D links to other supernodes + 13 blades = 16; none is "
      "free for blade13");
  EXPECT_EQ(SpecRefusal(WithBlades({}, {{"a", ""}, {"b", "a"}, {"c", "b"}})),
            "b has one network port, which is plugged into a; c cannot be plugged in as well");
  EXPECT_EQ(SpecRefusal(WithBlades({}, {{"a", ""}, {"a", ""}})),
            "a exists already; write another name");
  EXPECT_EQ(SpecRefusal(WithBlades({}, {{"a:b", ""}})),
            "\"a:b\" is not a name for a blade; write letters, digits and dashes");
  const auto unknown = Topology::Create(WithBlades({1, 1, 2}, {{"a", "sn0-d0-h2"}}));
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(unknown.status().message(),
            "no hub is named \"sn0-d0-h2\"; the nearest are sn0-d0-h0 or sn0-d0-h1");
}

TEST(TopologyTest, ADestinationIsAlsoAMulticastGroup) {
  TopologySpec spec{1, 1, 4, 1};
  const auto without = Topology::Create(spec);
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_EQ(without->ParseDestination("al").status(), without->ParseNode("al").status());
  spec.multicast = {{"all", "sn0-d0-h0", {}}};
  const auto topology = Topology::Create(spec);
  ASSERT_TRUE(topology.ok()) << topology.status();
  EXPECT_EQ(*topology->ParseDestination("all"), topology->nodes());
  EXPECT_EQ(*topology->ParseDestination("sn0-d0-h2"), 2u);
  const absl::Status no = topology->ParseDestination("al").status();
  EXPECT_EQ(no.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(no.message().find("no hub or multicast group is named \"al\"; the nearest are all"), 0u)
      << no;
}

}  // namespace
}  // namespace percs
