// The InfiniBand tree: hop counts over all pairs, static destination routing, and what is left of
// it when cables and crossbars fail.
#include "emulator/topology/ib_tree.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "emulator/base/random.h"
#include "emulator/roadrunner/host_path.h"
#include "tests/support/seed.h"

namespace percs::roadrunner {
namespace {

IbTree Tree(int triblades) { return *IbTree::WithTriblades(triblades); }

TEST(IbTree, OneHundredAndEightyOneTribladesDoNotFitIntoACu) {
  const auto tree = IbTree::Create({180, 181});
  ASSERT_FALSE(tree.ok());
  EXPECT_EQ(tree.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(tree.status().message().find("CU 1: 181 triblades"), std::string::npos)
      << tree.status();
  EXPECT_FALSE(IbTree::Create(std::vector<int>(25, 1)).ok());
  EXPECT_TRUE(IbTree::Create(std::vector<int>(24, 180)).ok());
}

TEST(IbTree, ThePapersMachineHas3060TribladesIn17Cus) {
  const IbTree tree = Tree(3060);
  EXPECT_EQ(tree.cus(), 17);
  EXPECT_EQ(tree.crossbars(), (17 + 8) * 36);
  // 96 uplinks per CU, on 24 leaves.
  int uplinks = 0;
  for (int leaf = 0; leaf < kLeaves; ++leaf) {
    for (int port = 8; port < 12; ++port) uplinks += tree.Peer(leaf, port) >= 0;
  }
  EXPECT_EQ(uplinks, 96);
}

TEST(IbTree, EveryCableHasTwoEndsThatNameEachOther) {
  const IbTree tree = Tree(400);
  for (int crossbar = 0; crossbar < tree.crossbars(); ++crossbar) {
    EXPECT_EQ(*tree.ParseCrossbar(tree.CrossbarName(crossbar)), crossbar);
    for (int port = 0; port < kCrossbarPorts; ++port) {
      const int peer = tree.Peer(crossbar, port);
      if (peer < 0) continue;
      int back = 0;
      for (int p = 0; p < kCrossbarPorts; ++p) back += tree.Peer(peer, p) == crossbar;
      EXPECT_EQ(back, 1) << tree.CrossbarName(crossbar) << ":p" << port;
    }
  }
}

TEST(IbTree, HopsAre1And3InsideACuAnd5And7AcrossCus) {
  const IbTree tree = Tree(3060);
  std::map<int, int> inside, across;
  for (int from = 0; from < 3060; from += 37) {
    for (int to = 0; to < 3060; ++to) {
      if (from == to) continue;
      const auto path = tree.Route(from, to);
      ASSERT_TRUE(path.ok()) << path.status();
      ++(tree.cu_of(from) == tree.cu_of(to) ? inside : across)[path->crossbars()];
    }
  }
  for (const auto& [hops, pairs] : inside) EXPECT_TRUE(hops == 1 || hops == 3) << hops;
  for (const auto& [hops, pairs] : across) EXPECT_TRUE(hops == 5 || hops == 7) << hops;
  EXPECT_EQ(inside.size(), 2u);
  EXPECT_EQ(across.size(), 2u);
}

TEST(IbTree, ACrossbarsChoiceDependsOnTheDestinationAlone) {
  IbTree tree = Tree(540);
  RandomStream random(test::Seed(), "ib_tree");
  PERCS_TRACE_SEED();
  for (int i = 0; i < 40; ++i) {
    tree.SetCable(*tree.ParseCable(tree.LinkName(static_cast<int>(random.Below(36 * 3)) * 24 + 12)),
                  false);
  }
  for (int to = 0; to < 540; to += 7) {
    std::map<int, int> next;  // by crossbar
    for (int from = 0; from < 540; ++from) {
      if (from == to) continue;
      const auto path = tree.Route(from, to);
      if (!path.ok()) continue;
      for (int i = 1; i < path->size; ++i) {
        const int link = path->links[static_cast<std::size_t>(i)];
        const auto [seen, first] = next.emplace(link / kCrossbarPorts, link);
        ASSERT_EQ(seen->second, link) << tree.LinkName(link);
      }
    }
  }
}

TEST(IbTree, TrafficSpreadsOverTheUplinks) {
  const IbTree tree = Tree(360);
  std::map<int, int> load;
  for (int from = 0; from < 180; ++from) {
    for (int to = 180; to < 360; ++to) {
      const auto path = tree.Route(from, to);
      ASSERT_TRUE(path.ok());
      for (int i = 1; i < path->size; ++i) {
        const int link = path->links[static_cast<std::size_t>(i)];
        const int port = link % kCrossbarPorts;
        if (link / kCrossbarPorts < kLeaves && port >= 8 && port < 12) ++load[link];
      }
    }
  }
  EXPECT_EQ(load.size(), 96u);
  for (const auto& [link, routes] : load) EXPECT_LT(routes, 4 * 180 * 180 / 96);
}

TEST(IbTree, RoutesAvoidWhatIsDeadAndSayWhatIsWhenNothingIsLeft) {
  PERCS_TRACE_SEED();
  RandomStream random(test::Seed(), "ib_faults");
  IbTree tree = Tree(540);
  for (int i = 0; i < 60; ++i) {
    const auto crossbar =
        static_cast<int>(random.Below(static_cast<std::uint32_t>(tree.crossbars())));
    const auto port = static_cast<int>(random.Below(kCrossbarPorts));
    if (tree.Peer(crossbar, port) >= 0) tree.SetCable(crossbar * kCrossbarPorts + port, false);
  }
  tree.SetCrossbar(*tree.ParseCrossbar("cu0-spine3"), false);
  tree.SetCrossbar(*tree.ParseCrossbar("sw1-b2"), false);
  int routed = 0, refused = 0;
  for (int from = 0; from < 540; from += 5) {
    for (int to = 0; to < 540; ++to) {
      if (from == to) continue;
      const auto path = tree.Route(from, to);
      if (!path.ok()) {
        ++refused;
        EXPECT_EQ(path.status().code(), absl::StatusCode::kUnavailable);
        continue;
      }
      ++routed;
      for (int i = 0; i < path->size; ++i) {
        ASSERT_TRUE(tree.alive(path->links[static_cast<std::size_t>(i)]));
      }
    }
  }
  EXPECT_GT(routed, 100 * refused);
  tree.SetCrossbar(*tree.ParseCrossbar("cu1-leaf0"), false);
  const auto path = tree.Route(0, 180);
  ASSERT_FALSE(path.ok());
  EXPECT_NE(path.status().message().find("triblade 180"), std::string::npos) << path.status();
}

TEST(IbNetwork, AMessageIsSentAgainUntilTheTablesGoAroundTheDeadCable) {
  const InfinibandParameters p;
  IbNetwork network(Tree(180), p);
  const auto path = network.tree().Route(0, 100);
  ASSERT_TRUE(path.ok());
  ASSERT_TRUE(network.Inject({2 * kMicrosecond, false, path->links[1], false}).ok());
  const auto before = network.Send(0, 100, 2048, 0);
  ASSERT_TRUE(before.ok());
  EXPECT_LT(*before, 3 * kMicrosecond);
  const auto during = network.Send(0, 100, 2048, 5 * kMicrosecond);
  ASSERT_TRUE(during.ok());
  EXPECT_GE(*during, p.sweep);
  EXPECT_GT(network.stats().retries, 10u);
  const auto after = network.Send(0, 100, 2048, 2 * p.sweep);
  ASSERT_TRUE(after.ok());
  EXPECT_LT(*after - 2 * p.sweep, 3 * kMicrosecond);
}

TEST(IbNetwork, AMessageToATribladeWithoutItsCableFailsWithTheReason) {
  IbNetwork network(Tree(180), {});
  ASSERT_TRUE(network.Inject({0, false, *network.tree().ParseCable("triblade100"), false}).ok());
  const auto sent = network.Send(0, 100, 2048, kMicrosecond);
  ASSERT_FALSE(sent.ok());
  EXPECT_NE(sent.status().message().find("cu0-leaf12 has no live link"), std::string::npos)
      << sent.status();
}

TEST(IbNetwork, TwoMessagesShareALinkOneAfterTheOther) {
  IbNetwork network(Tree(180), {});
  const Time one = *network.Send(0, 1, 1'000'000, 0);
  const Time two = *network.Send(2, 1, 1'000'000, 0);
  EXPECT_EQ(two - one, 500 * kMicrosecond);
  EXPECT_EQ(one, network.MinimalTime(0, 1) + 500 * kMicrosecond);
}

TEST(HostPath, TwoDacsAndOneMpiTake924Microseconds) {
  const RoadrunnerParameters p = DefaultParameters();
  HostPath path(p, Tree(2));
  const Time up = path.DacsUp(0, 0, p.dacs.overhead);
  const Time over = *path.Mpi(0, 4, 0, up);
  const Time down = path.DacsDown(0, 4, 0, over) + p.dacs.overhead;
  EXPECT_EQ(down, 9'240 * kNanosecond);
}

}  // namespace
}  // namespace percs::roadrunner
