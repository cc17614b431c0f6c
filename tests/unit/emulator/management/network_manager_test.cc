// Network management by itself: what it has installed, and what not. Method: alerts are handed to
// it, hubs answer at once, and it plans as the test wants.
#include "emulator/management/network_manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <optional>

#include "tests/support/fault_runs.h"

namespace percs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Management {
 public:
  Management(const TopologySpec& spec,
             std::function<TableSet(const Topology&, const Failures&)> plan)
      : topology_(*Topology::Create(spec)),
        manager_(
            topology_, parameters_, /*reroute=*/true, &work_, &log_,
            [this](ControlItem&& item) { sent_.push_back(std::move(item)); },
            [this, plan](const Failures& failures) { return plan(topology_, failures); }) {
    const TableSet tables = Planner(topology_).Plan({});
    for (NodeId node = 0; node < topology_.nodes(); ++node) manager_.SetTables(node, tables[node]);
  }

  // Both ends raise an alert; then everything up to `until`.
  void Alert(LinkEnd end, bool up, Time at, Time until) {
    for (const LinkEnd& raiser : {end, topology_.Peer(end.node, end.port)}) Raise(raiser, up, at);
    Run(at, until);
  }
  // A probe from `end` finds another hub or port than it should; then everything up to `until`.
  void WrongAnswer(LinkEnd end, LinkEnd found, Time at, Time until) {
    Raise(end, false, at, std::uint64_t{found.node} << 8 | found.port);
    Run(at, until);
  }
  void Run(Time from, Time until) {
    for (Time now = from; now < until; now += kUs) {
      manager_.Run(now + kUs);
      Answer();
    }
  }
  std::size_t Sent(ControlItem::Kind kind) const {
    return static_cast<std::size_t>(std::count(kinds_.begin(), kinds_.end(), kind));
  }
  std::vector<std::string> Events(const std::string& kind) const {
    std::uint64_t lost = 0;
    std::vector<std::string> texts;
    for (const FabricEvent& event : log_.After(0, EventLog::kKept, &lost)) {
      if (event.kind == kind) texts.push_back(event.subject + ": " + event.text);
    }
    return texts;
  }
  const Topology& topology() const { return topology_; }
  NetworkManager& manager() { return manager_; }
  std::int64_t unfinished() const { return work_.unfinished; }

 private:
  // Of the state of its link, or of what a probe found.
  void Raise(LinkEnd raiser, bool up, Time at, std::optional<std::uint64_t> found = {}) {
    ++work_.unfinished;  // as the hub does
    ControlItem alert;
    alert.kind = found ? ControlItem::Kind::kWiringAlert : ControlItem::Kind::kAlert;
    alert.source = raiser.node;
    alert.target = kManagerNode;
    alert.port = raiser.port;
    alert.up = up;
    alert.raised = at;
    alert.arrival = at + parameters_.management_latency;
    alert.hash = found.value_or(0);
    manager_.Receive(alert);
  }
  void Answer() {
    for (; !sent_.empty(); sent_.pop_front()) {
      const ControlItem& item = sent_.front();
      kinds_.push_back(item.kind);
      if (item.kind != ControlItem::Kind::kPrepare) continue;
      ControlItem answer;
      answer.kind = ControlItem::Kind::kPrepared;
      answer.source = item.target;
      answer.target = kManagerNode;
      answer.epoch = item.epoch;
      answer.arrival = item.arrival + parameters_.management_latency;
      manager_.Receive(answer);
    }
  }

  const P7ihParameters parameters_;
  const Topology topology_;
  WorkCounters work_;
  EventLog log_;
  std::deque<ControlItem> sent_;
  std::vector<ControlItem::Kind> kinds_;
  NetworkManager manager_;
};

TEST(NetworkManager, APlanThatFailsTheCheckIsNotInstalledAndTheNextOneIsPlannedForAllThatIsDown) {
  bool bad = true;
  std::vector<std::size_t> planned_for;
  Management m({1, 1, 4, 1}, [&](const Topology& topology, const Failures& failures) {
    planned_for.push_back(failures.links.size());
    return Planner(topology).Plan(bad ? Failures()
                                      : failures);  // the bad one leads over the dead link
  });
  const auto before = m.manager().tables(0);

  m.Alert({0, 0}, false, 10 * kUs, 100 * kUs);
  EXPECT_THAT(m.Events("plan_refused"),
              ElementsAre("epoch 2: the planned tables fail the check; none is installed"));
  EXPECT_EQ(m.Sent(ControlItem::Kind::kPrepare), 0u);
  EXPECT_EQ(m.Sent(ControlItem::Kind::kCommit), 0u);
  EXPECT_EQ(m.manager().tables(0), before);
  EXPECT_EQ(m.manager().installed_epoch(), 1u);
  EXPECT_THAT(m.manager().reroutes(), IsEmpty());
  EXPECT_THAT(m.Events("reroute"), IsEmpty());
  EXPECT_EQ(m.unfinished(), 0) << "nothing waits for it";

  bad = false;
  m.Alert({2, 1}, false, 200 * kUs, 300 * kUs);
  EXPECT_THAT(planned_for, ElementsAre(1u, 2u));
  EXPECT_EQ(m.Events("plan_refused").size(), 1u);
  EXPECT_EQ(m.Sent(ControlItem::Kind::kPrepare), 4u);
  EXPECT_EQ(m.Sent(ControlItem::Kind::kCommit), 4u);
  EXPECT_EQ(m.manager().installed_epoch(), 2u);
  const TableSet right = Planner(m.topology()).Plan(m.manager().failures());
  for (NodeId node = 0; node < 4; ++node)
    EXPECT_EQ(m.manager().tables(node)->Hash(), right[node]->Hash());
  ASSERT_EQ(m.manager().reroutes().size(), 1u);
  EXPECT_THAT(m.Events("reroute"), ElementsAre(HasSubstr("0 pairs unreachable")));
  EXPECT_EQ(m.unfinished(), 0);
}

TEST(NetworkManager, APlanWithAHoleForAPairThatHasAWayIsRefused) {
  Management m({2, 1, 2, 1}, [](const Topology& topology, const Failures& failures) {
    TableSet tables = Planner(topology).Plan(failures);
    auto hole = std::make_shared<HubTables>(*tables[0]);
    auto source = std::make_shared<RouteTable>(*hole->source_direct);
    source->intra[1] = 0;
    hole->source_direct = source;
    tables[0] = hole;
    return tables;
  });
  m.Alert({0, kDFirst}, false, 10 * kUs, 100 * kUs);
  EXPECT_EQ(m.Events("plan_refused").size(), 1u);
  EXPECT_THAT(m.manager().reroutes(), IsEmpty());
}

TEST(NetworkManager, AMachineThatIsTooLargeForTheCheckSaysThatNothingWasChecked) {
  Management m({67, 4, 8, 1}, [](const Topology& topology, const Failures&) {
    return TableSet(topology.nodes(), std::make_shared<HubTables>());
  });
  ASSERT_GT(m.topology().nodes(), NetworkManager::kCheckedNodesMax);
  m.Alert({0, 0}, false, 10 * kUs, 50 * kUs);
  EXPECT_THAT(
      m.Events("reroute"),
      ElementsAre(HasSubstr("not checked and unreachable pairs not counted above 2112 nodes")));
}

TEST(NetworkManager, LoadedTablesAreInstalledAndTheHubsTheyChangeAreCounted) {
  Management m({1, 1, 4, 1}, [](const Topology& topology, const Failures& failures) {
    return Planner(topology).Plan(failures);
  });
  Time at = 10 * kUs;
  // Without the link of hubs 0 and 1 only these two have another way; then the same once more.
  for (const std::uint32_t changed : {2u, 0u}) {
    const auto loaded = m.manager().Load(Planner(m.topology()).Plan({{{0, 0}}, {}}), at);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_EQ(loaded->hubs_changed, changed);
    EXPECT_EQ(loaded->unreachable_pairs, 0u);
    m.Run(at, at + 50 * kUs);
    EXPECT_EQ(m.manager().installed_epoch(), loaded->epoch);
    EXPECT_EQ(m.manager().reroutes().back().committed, loaded->committed);
    EXPECT_EQ(m.manager().reroutes().back().hubs_changed, changed);
    EXPECT_EQ(m.unfinished(), 0);
    at += 100 * kUs;
  }
}

// Three supernodes of four hubs with two D links between each two: every hub has one.
Management WithFourDLinks() {
  return {{3, 1, 4, 2}, [](const Topology& topology, const Failures& failures) {
            return Planner(topology).Plan(failures);
          }};
}

TEST(NetworkManager, ARejoinedHubHasItsCablesRightAndThoseOfOthersStaySwapped) {
  const LinkEnd one{0, kDFirst}, two{1, kDFirst};
  const Topology topology = *Topology::Create({3, 1, 4, 2});
  const LinkEnd far_one = topology.Peer(one.node, one.port), far_two = topology.Peer(1, kDFirst);
  for (const NodeId hub : {one.node, two.node, far_one.node, far_two.node, NodeId{3}}) {
    Management m = WithFourDLinks();
    m.WrongAnswer(one, far_two, 10 * kUs, 100 * kUs);
    using Links = std::set<std::pair<NodeId, PortId>>;
    const Links swapped = {{one.node, one.port}, {two.node, two.port}};
    EXPECT_EQ(m.manager().failures().links, swapped);
    m.manager().Lose({{hub}, "somebody", 1, 100 * kUs});
    m.Alert({hub, 0}, false, 100 * kUs, 200 * kUs);
    RejoinedHubs back;
    back.nodes = {hub};
    back.at = 200 * kUs;
    m.manager().Rejoin(back);
    m.Alert({hub, 0}, true, 200 * kUs, 300 * kUs);
    EXPECT_EQ(m.manager().failures().links, hub == 3 ? swapped : Links()) << hub;
    EXPECT_EQ(m.unfinished(), 0);
  }
}

TEST(NetworkManager, AProbeAnswerThatNamesAHubThatDoesNotExistCostsOnlyTheLinkOfTheProbe) {
  const LinkEnd end{0, kDFirst};
  // The last one is 1 in its low 16 bits.
  for (const NodeId nobody : {NodeId{12}, kNoNode, NodeId{0x10001}}) {
    Management m = WithFourDLinks();
    m.WrongAnswer(end, {nobody, kDFirst}, 10 * kUs, 100 * kUs);
    EXPECT_EQ(m.manager().failures().links,
              (std::set<std::pair<NodeId, PortId>>{{end.node, end.port}}))
        << nobody;
    EXPECT_EQ(m.unfinished(), 0);
  }
}

}  // namespace
}  // namespace percs
