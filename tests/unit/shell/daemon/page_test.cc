// Parts of the page's server that need neither a socket nor a fabric.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "daemon/page/control_gateway.h"
#include "daemon/page/fabric_sight.h"
#include "daemon/page/feed_reader.h"
#include "daemon/page/feed_writer.h"
#include "daemon/page/link_status.h"
#include "daemon/page/local_sight.h"
#include "daemon/page/page_files.h"
#include "daemon/page/page_guard.h"
#include "daemon/page/switch_spots.h"

namespace percs {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

FeedReader::Text TextOf(const std::string& text) {
  return std::make_shared<const std::string>(text);
}

// A reader and what the server did for it.
struct SlowBrowser {
  int slept = 0, woken = 0;
  FeedReader reader{TextOf("hello "), [this] { ++slept; }, [this] { ++woken; }};

  // All that is there, in pieces of `room` bytes.
  std::string TakeAll(std::size_t room) {
    std::string text, piece(room, '\0');
    while (const auto bytes = reader.Take(piece.data(), room)) {
      if (*bytes == 0) break;
      text.append(piece, 0, *bytes);
    }
    return text;
  }
};

TEST(FeedReaderTest, ABrowserGetsASnapshotAndThenEveryChangeInOrder) {
  SlowBrowser browser;
  browser.reader.Push(TextOf("too early "));
  EXPECT_TRUE(browser.reader.WantsSnapshot());
  browser.reader.PushSnapshot(TextOf("snapshot "));
  browser.reader.Push(TextOf("one "));
  EXPECT_EQ("hello snapshot one ", browser.TakeAll(3));
  EXPECT_EQ(1, browser.slept);
  EXPECT_EQ(0, browser.woken);
  browser.reader.Push(TextOf("two "));
  EXPECT_EQ(1, browser.woken);
  EXPECT_EQ("two ", browser.TakeAll(100));
}

TEST(FeedReaderTest, ASlowBrowserGetsASnapshotInPlaceOfWhatItMissed) {
  SlowBrowser browser;
  browser.reader.PushSnapshot(TextOf("snapshot "));
  EXPECT_EQ("hello snapshot ", browser.TakeAll(100));
  browser.reader.Push(TextOf("begun "));
  std::string piece(2, '\0');
  ASSERT_EQ(2u, browser.reader.Take(piece.data(), piece.size()));
  for (std::size_t i = 0; i < FeedReader::kMessagesMax; ++i) browser.reader.Push(TextOf("more "));
  EXPECT_TRUE(browser.reader.WantsSnapshot());
  browser.reader.Push(TextOf("not this "));
  browser.reader.PushSnapshot(TextOf("new snapshot "));
  EXPECT_EQ("gun new snapshot ", browser.TakeAll(100));
}

TEST(FeedReaderTest, TheEndWakesAndIsTheEnd) {
  SlowBrowser browser;
  EXPECT_EQ("hello ", browser.TakeAll(100));
  browser.reader.End();
  EXPECT_EQ(1, browser.woken);
  char byte = 0;
  EXPECT_FALSE(browser.reader.Take(&byte, 1).has_value());
}

TEST(PageGuardTest, OnlyOurOwnHostsAndPagesMayAsk) {
  const PageGuard guard("127.0.0.1:4711", NewPageToken(), "");
  for (const char* host : {"127.0.0.1:4711", "localhost:4711", "10.1.2.3:4711", "[::1]:4711"}) {
    EXPECT_TRUE(guard.CheckSource({host, "", "", ""}).ok()) << host;
    EXPECT_TRUE(guard.CheckSource({host, std::string("http://") + host, "same-origin", ""}).ok());
  }
  for (const char* host : {"", "127.0.0.1", "127.0.0.1:80", "evil.example:4711", ":4711",
                           "127.0.0.1.evil.example:4711", "localhost.evil.example:4711"}) {
    EXPECT_EQ(absl::StatusCode::kPermissionDenied, guard.CheckSource({host, "", "", ""}).code())
        << host;
  }
  for (const char* origin : {"null", "https://127.0.0.1:4711", "http://127.0.0.1:4712"}) {
    EXPECT_FALSE(guard.CheckSource({"127.0.0.1:4711", origin, "", ""}).ok()) << origin;
  }
  for (const char* site : {"cross-site", "same-site"}) {
    EXPECT_FALSE(guard.CheckSource({"127.0.0.1:4711", "", site, ""}).ok()) << site;
  }
}

TEST(PageGuardTest, TokensAreDrawnAndHaveToMatch) {
  const PageGuard guard("127.0.0.1:4711", NewPageToken(), "");
  EXPECT_EQ(32u, guard.token().size());
  EXPECT_NE(NewPageToken(), guard.token());
  EXPECT_TRUE(guard.CheckToken({"", "", "", guard.token()}).ok());
  for (const std::string& token : {std::string(), guard.token().substr(1), NewPageToken()}) {
    EXPECT_EQ(absl::StatusCode::kUnauthenticated, guard.CheckToken({"", "", "", token}).code());
  }
}

TEST(ControlGatewayTest, MethodsWithOneAnswerAreThere) {
  EXPECT_TRUE(ControlGateway::CheckMethod("CreateFault").ok());
  for (const char* method : {"", "WatchEvents", "createFault", "../Status"}) {
    EXPECT_THAT(std::string(ControlGateway::CheckMethod(method).message()),
                HasSubstr("is not there"));
  }
}

TEST(PageFilesTest, FilesAreFoundByTheirPathsAndNothingElseIs) {
  for (const char* path : {"/", "/page.js", "/page.css"}) {
    ASSERT_NE(nullptr, FindPageFile(path)) << path;
    EXPECT_LT(1000u, FindPageFile(path)->text.size()) << path;
  }
  EXPECT_EQ(nullptr, FindPageFile("/page.js/"));
  EXPECT_EQ(nullptr, FindPageFile(""));
}

// 17 supernodes of 32 hubs: more nodes than the page has links of.
Topology LargeMachine() {
  TopologySpec spec;
  spec.supernodes = 17;
  spec.drawers = 4;
  spec.hubs = 8;
  return *Topology::Create(spec);
}

TEST(SeenRowsTest, ARowIsTheUseOfTheLinksThatLeaveASupernode) {
  const Topology topology = LargeMachine();
  EXPECT_TRUE(SeenLinks(topology).places()->empty());
  const SeenRows rows(topology);
  ASSERT_EQ(17, rows.supernodes());
  const std::vector<int>& outputs = *rows.outputs();
  EXPECT_EQ(32 * 31, outputs[3 * 17 + 3]);  // LL and LR, both ways
  std::size_t within = 0, leaving = 0;
  const std::vector<LinkEnd> of_row = *LinksAt(topology, "sn3");
  for (const LinkEnd link : of_row) {
    const NodeId far = topology.Peer(link.node, link.port).node;
    (topology.supernode_of(link.node) == topology.supernode_of(far) ? within : leaving) += 1;
  }
  EXPECT_EQ(32u * 31 / 2, within);
  EXPECT_EQ(leaving,
            static_cast<std::size_t>(std::accumulate(&outputs[3 * 17], &outputs[4 * 17], 0) -
                                     outputs[3 * 17 + 3]));

  const P7ihParameters parameters;
  NodeStats sent, silent;
  const NodeId hub = topology.node(3, 5);
  const PortId port = topology.LPort(hub, topology.node(3, 6));
  sent.ports[port].vc[0].flits = 7;
  sent.ports[port].vc[1].flits = 2;
  const RowSight row = rows.Look(
      topology, parameters, 3,
      [&](NodeId node) { return node == hub     ? &sent
                                : node % 2 == 0 ? &silent
                                                : nullptr; },
      [&](LinkEnd end) { return end.node != hub || end.port == port; });
  EXPECT_EQ(9.0 * static_cast<double>(parameters.link(LinkClass::kLl).flit_time), row.busy_ps[3]);
  EXPECT_EQ(0.0, row.busy_ps[4]);
  EXPECT_EQ(30, row.down[3]);
  // Of a link between supernodes, at one of its ends.
  const auto links = *LinksAt(topology, "sn4");
  const LinkEnd leaving_link = *std::find_if(links.begin(), links.end(), [&](LinkEnd l) {
    return IsD(l.port) && topology.supernode_of(l.node) == 4;
  });
  const RowSight other = rows.Look(
      topology, parameters, 4, [&](NodeId) { return &silent; },
      [&](LinkEnd end) { return end.node != leaving_link.node || end.port != leaving_link.port; });
  const int behind = topology.SupernodeBehind(leaving_link.node, leaving_link.port);
  EXPECT_EQ(1, other.down[static_cast<std::size_t>(behind)]);
  EXPECT_EQ(1, std::accumulate(other.down.begin(), other.down.end(), 0));
}

TEST(SeenRowsTest, ASmallMachineHasNone) {
  const Topology topology = *Topology::Create(TopologySpec{});
  EXPECT_EQ(0, SeenRows(topology).supernodes());
  EXPECT_FALSE(SeenRows(topology).outputs());
}

FabricSight TwoRows(Time at, double busy, int down) {
  FabricSight sight;
  sight.run = 1;
  sight.virtual_time = at;
  sight.outputs = std::make_shared<const std::vector<int>>(std::vector<int>{4, 2, 2, 4});
  sight.places = std::make_shared<const std::vector<LinkPlace>>();
  sight.rows.push_back({1, at, {0, busy}, {0, down}});
  sight.counted = false;
  return sight;
}

TEST(LocalSightTest, LooksAtALargeMachinePartByPartUntilAllIsCounted) {
  Scenario scenario;
  scenario.topology = LargeMachine().spec();
  const auto fabric = *Fabric::Create(scenario, Placement::Single(17 * 32));
  LocalSight sight(fabric->topology(), 1);
  for (int round = 0; round < 2; ++round) {
    std::vector<int> rows;
    bool counted = false;
    for (int looks = 0; !counted && looks < 10; ++looks) {
      const FabricSight seen = sight.LookOn(*fabric, /*ended=*/false);
      counted = seen.counted;
      EXPECT_TRUE(counted || seen.rows.size() >= 128 / 32) << "a look has a least part";
      for (const RowSight& row : seen.rows) rows.push_back(row.supernode);
    }
    EXPECT_TRUE(counted);
    std::vector<int> all(17);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(rows, all);
  }
  EXPECT_EQ(17u, sight.LookOn(*fabric, /*ended=*/true).rows.size());
}

TEST(FeedWriterTest, ARowTellsTheUseSinceTheLookBefore) {
  FeedWriter writer;
  writer.TakeSight(TwoRows(1000, 400, 0));
  // Nothing before it. Who reads from before the first look on gets what the matrix is, too.
  EXPECT_THAT(writer.Delta(), HasSubstr(R"("matrix":{"virtual_time":1000,"supernodes":2,)"
                                        R"("outputs":[[4,1],[2,2],[4,1]],)"
                                        R"("rows":{"1":["AAAA",[]]}})"));
  // Four outputs sent for 2000 of 4 x 1000 ps: one half.
  writer.TakeSight(TwoRows(2000, 2400, 3));
  const std::string delta = writer.Delta();
  EXPECT_THAT(delta, HasSubstr(R"("matrix":{"virtual_time":2000,"rows":{"1":["AAgA",[[1,3]]]}})"));
  EXPECT_THAT(delta, Not(HasSubstr("counters")));
  EXPECT_THAT(writer.Snapshot(),
              HasSubstr(R"("supernodes":2,"outputs":[[4,1],[2,2],[4,1]],"rows":{"1":)"));
  writer.TakeSight(TwoRows(3000, 4400, 3));
  EXPECT_THAT(writer.Delta(), Not(HasSubstr("matrix")));  // as before
}

TEST(FeedWriterTest, RanksAreToldWhereTheyDoSomethingElse) {
  FeedWriter writer;
  FabricSight sight = TwoRows(1000, 0, 0);
  sight.ranks = {{"sn0-d0-h0", {{0, RankState::kComputing}, {2, RankState::kWaiting}}},
                 {"sn0-d0-h1", {{1, RankState::kBusy}}}};
  writer.TakeSight(sight);
  EXPECT_THAT(writer.Delta(),
              HasSubstr(R"("ranks":{"sn0-d0-h0":[[0,2],"cw"],"sn0-d0-h1":[[1],"b"]})"));
  sight.ranks[1].ranks[0].state = RankState::kDone;
  writer.TakeSight(sight);
  EXPECT_THAT(writer.Delta(), HasSubstr(R"("ranks":{"sn0-d0-h1":[[1],"d"]})"));
  EXPECT_THAT(writer.Snapshot(), HasSubstr(R"("ranks":{"sn0-d0-h0":[[0,2],"cw"],"sn0-d0-h1")"));
}

TEST(FeedWriterTest, WhatIsUnderWayIsToldWhole) {
  FeedWriter writer;
  FabricSight sight = TwoRows(1000, 0, 0);
  sight.in_flight = {{"sn0-d0-h0", {{{3, 1, 2, {{0, 4}, {5, 1}}}}, {}}},
                     {"blade0", {{}, {{7, 2, {{1, 11, true, 9}}}}}}};
  writer.TakeSight(sight);
  const std::string told =
      R"("in_flight":{"sn0-d0-h0":[[[3,1,2,[[0,4],[5,1]]]],[]],"blade0":[[],[[7,2,[[1,11,1,9]]]]]})";
  EXPECT_THAT(writer.Delta(), HasSubstr(told));
  writer.TakeSight(sight);
  EXPECT_THAT(writer.Delta(), Not(HasSubstr("in_flight")));
  EXPECT_THAT(writer.Snapshot(), HasSubstr(told));
  sight.in_flight.pop_back();
  writer.TakeSight(sight);
  EXPECT_THAT(writer.Delta(),
              HasSubstr(R"("in_flight":{"sn0-d0-h0":[[[3,1,2,[[0,4],[5,1]]]],[]]})"));
  sight.in_flight.clear();
  writer.TakeSight(sight);
  EXPECT_THAT(writer.Delta(), HasSubstr(R"("in_flight":{})"));
}

TEST(SeenLinksTest, OfEachHubWhatItDroppedAndHowOftenItReroutedPackets) {
  const Topology topology =
      *Topology::Create(TopologySpec{.supernodes = 1, .drawers = 1, .hubs = 3});
  NodeStats busy;
  busy.packets_dropped[0] = 2;
  busy.packets_dropped[1] = 5;
  const SeenLinks links(topology);
  const auto hubs = links.LookAtHubs([&](NodeId node) { return node == 1 ? &busy : nullptr; },
                                     [](NodeId node) { return std::uint64_t{node} + 2; });
  ASSERT_EQ(3u, hubs.size());
  EXPECT_EQ((HubSight{7, 3}), hubs[1]);
  EXPECT_EQ(HubSight{}, hubs[2]);
  EXPECT_EQ("sn0-d0-h1", (*links.hubs())[1]);
  EXPECT_TRUE(SeenLinks(LargeMachine()).hubs()->empty());
}

TEST(FeedWriterTest, HubsAreToldWhereTheyDroppedOrRerouted) {
  FeedWriter writer;
  FabricSight sight = TwoRows(1000, 0, 0);
  sight.hub_names =
      std::make_shared<const std::vector<std::string>>(std::vector<std::string>{"a", "b"});
  sight.hubs = {{0, 0}, {4, 1}};
  writer.TakeSight(sight);
  EXPECT_THAT(writer.Delta(), HasSubstr(R"("hubs":{"b":[4,1]})"));
  writer.TakeSight(sight);
  EXPECT_THAT(writer.Delta(), Not(HasSubstr("hubs")));
  sight.hubs[0].packets_dropped = 1;
  writer.TakeSight(sight);
  EXPECT_THAT(writer.Delta(), HasSubstr(R"("hubs":{"a":[1,0]})"));
  EXPECT_THAT(writer.Snapshot(), HasSubstr(R"("hubs":{"a":[1,0],"b":[4,1]})"));
}

TEST(FeedWriterTest, WhereSwitchesStandIsToldOnceAndInSnapshots) {
  FeedWriter writer;
  FabricSight sight = TwoRows(1000, 0, 0);
  sight.hub_names = std::make_shared<const std::vector<std::string>>(
      std::vector<std::string>{"s0-0", "s0-1", "s1-0", "s1-1"});
  sight.hubs.resize(4);
  writer.TakeSight(sight);
  const char* const told = R"("spots":{"s0-0":[0.000,0.000],"s0-1":[1.000,0.000],)";
  EXPECT_THAT(writer.Delta(), HasSubstr(told));
  writer.TakeSight(sight);
  EXPECT_THAT(writer.Delta(), Not(HasSubstr("spots")));
  EXPECT_THAT(writer.Snapshot(), HasSubstr(told));
}

TEST(SwitchSpotsTest, GridsOfGridsLevelsAndCircles) {
  using Spots = std::vector<Spot>;
  EXPECT_EQ((Spots{{0, 0}, {1, 0}, {0, 1}, {1, 1}}),
            SpotsOfSwitches({"s0-0", "s0-1", "s1-0", "s1-1"}));
  EXPECT_EQ((Spots{{0, 0}, {1, 0}, {3, 0}, {4, 0}, {0, 2}, {1, 2}}),
            SpotsOfSwitches({"s0-0-0", "s0-0-1", "s1-0-0", "s1-0-1", "s2-0-0", "s2-0-1"}));
  EXPECT_EQ((Spots{{0, 2}, {1, 2}, {0.5, 0}}), SpotsOfSwitches({"l1-s0", "l1-s1", "l2-s0"}));
  // One dimension, several numbers of dimensions, names of all kinds, gaps, and numbers that are
  // too large.
  for (const std::vector<std::string>& names : {std::vector<std::string>{"s0", "s1", "s2"},
                                                {"s0-1", "s0-1-2", "s1-1"},
                                                {"l1-s0", "west", "sn0-d0-h0"},
                                                {"s0-0", "s0-1", "s1-0"},
                                                {"s0-0", "s0-1", "s0-2147483647"},
                                                {"l1-s0", "l1-s1", "l1-s2147483647"}}) {
    const Spots circle = SpotsOfSwitches(names);
    ASSERT_EQ(3u, circle.size());
    EXPECT_EQ((Spot{1, 0}), circle[0]);
    EXPECT_NEAR(1.866, circle[1].x, 0.001);
    EXPECT_NEAR(1.5, circle[1].y, 0.001);
  }
  // Hubs, blades and crossbars are placed otherwise.
  EXPECT_TRUE(SpotsOfSwitches({}).empty());
  EXPECT_TRUE(SpotsOfSwitches({"sn0-d0-h0", "blade3", "cu0-leaf3", "sw2-a5", "triblade0"}).empty());
}

TEST(PageGuardTest, WhoMayOnlyLookIsRefusedTheRest) {
  const PageGuard guard("127.0.0.1:4711", NewPageToken(), "", Role::kViewer);
  EXPECT_EQ("viewer", guard.RoleOf(""));
  EXPECT_TRUE(guard.CheckRole("ListLinks", "").ok());
  EXPECT_EQ("CreateFault needs the role operator; this page was opened with the role viewer",
            guard.CheckRole("CreateFault", "").message());
}

TEST(LinkStatusTest, LinksOfAHubOfASupernodeAndOfAll) {
  const Topology topology = LargeMachine();
  EXPECT_EQ(topology.Links().size(), LinksAt(topology, "")->size());
  std::size_t plugged = 0;
  for (PortId port = 0; port < kLinkPorts; ++port)
    plugged += topology.connected(topology.node(2, 1), port) ? 1 : 0;
  EXPECT_EQ(plugged, LinksAt(topology, "sn2-d0-h1")->size());
  EXPECT_LE(31u, plugged);
  EXPECT_EQ("sn17: the machine has the supernodes sn0 to sn16",
            LinksAt(topology, "sn17").status().message());
  EXPECT_FALSE(LinksAt(topology, "sn1x").ok());
}

}  // namespace
}  // namespace percs
