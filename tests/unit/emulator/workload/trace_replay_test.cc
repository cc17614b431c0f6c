// Method: traces small enough to work out by hand over a network of fixed latency, random traces
// whose accounts must add up wherever their ranks are placed, and the recorded application over a
// LogGP network against the time that its README states.
#include "emulator/workload/trace_replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "emulator/base/random.h"
#include "emulator/sim/run.h"
#include "emulator/workload/goal.h"
#include "fmt/format.h"
#include "tests/support/random_trace.h"
#include "tests/support/seed.h"
#include "tests/support/source_dir.h"

namespace percs {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct LogGp {
  Time latency = 1000 * kNanosecond;
  double picoseconds_per_byte = 0;  // a rank's messages leave one after another
  Time send_overhead = 10 * kNanosecond, receive_overhead = 20 * kNanosecond;
};

// Hubs with their ranks, timers and messages in order of (time, timer before message, place).
class FakeFabric {
 public:
  FakeFabric(const TraceWorkload& workload, NodeId nodes, const LogGp& network)
      : workload_(workload), nodes_(nodes), network_(network), nic_free_(ranks()) {
    for (NodeId n = 0; n < nodes; ++n) {
      hubs_.push_back(std::make_unique<Hub>(*this, n));
    }
  }

  void Run() {
    for (auto& hub : hubs_) {
      hub->replay.Start(0, *hub);
      hub->next_send = hub->replay.NextSend();
    }
    while (!events_.empty()) {
      const Key key = events_.begin()->first;
      const Message m = events_.begin()->second;
      events_.erase(events_.begin());
      now_ = std::get<0>(key);
      if (std::get<1>(key) == 0) {
        Hub& hub = *hubs_[std::get<2>(key)];
        hub.replay.OnTimer(now_, std::get<3>(key), hub);
        hub.next_send = hub.replay.NextSend();
      } else {
        Hub& hub = *hubs_[NodeOfRank(workload_.mapping, m.destination, ranks(), nodes_)];
        hub.next_send = std::min(hub.next_send, now_ + network_.send_overhead);
        hub.replay.OnMessage(now_, m.source, m.destination, m.tag, m.bytes, hub);
        hub.next_send = hub.replay.NextSend();
      }
    }
  }
  bool done() const {
    for (auto& hub : hubs_) {
      if (!hub->replay.done()) return false;
    }
    return true;
  }
  std::map<std::uint32_t, RankResult> results() const {
    std::map<std::uint32_t, RankResult> all;
    for (auto& hub : hubs_) {
      for (const RankResult& r : hub->replay.results()) all[r.rank] = r;
    }
    return all;
  }
  Time finished() const {
    Time last = 0;
    for (auto& [rank, r] : results()) last = std::max(last, r.finished);
    return last;
  }
  const TraceReplay& replay(NodeId node) const { return hubs_[node]->replay; }
  RankLog& log(NodeId node) { return hubs_[node]->replay.log(); }

 private:
  // Time, kind, hub or destination rank, token or source rank, sequence.
  using Key = std::tuple<Time, int, std::uint32_t, std::uint64_t, std::uint64_t>;
  struct Message {
    std::uint32_t source = 0, destination = 0, tag = 0;
    std::uint64_t bytes = 0;
  };
  struct Hub : TraceActions {
    Hub(FakeFabric& f, NodeId n)
        : fabric(f),
          node(n),
          replay(f.workload_, RanksOfNode(f.workload_.mapping, n, f.ranks(), f.nodes_),
                 f.network_.send_overhead, f.network_.receive_overhead) {}
    void SetTimer(Time at, std::uint64_t token) override {
      EXPECT_GT(at, fabric.now_);
      fabric.events_[{at, 0, node, token, 0}] = {};
    }
    void SendMessage(std::uint32_t source, std::uint32_t destination, std::uint32_t tag,
                     std::uint64_t bytes) override {
      EXPECT_GE(fabric.now_, next_send);
      fabric.Send({source, destination, tag, bytes});
    }
    FakeFabric& fabric;
    NodeId node;
    TraceReplay replay;
    Time next_send = 0;  // not before, as it has said last
  };

  std::uint32_t ranks() const { return static_cast<std::uint32_t>(workload_.trace.ranks.size()); }
  void Send(const Message& m) {
    Time& free = nic_free_[m.source];
    free = std::max(free, now_) +
           static_cast<Time>(static_cast<double>(m.bytes) * network_.picoseconds_per_byte);
    events_[{free + network_.latency, 1, m.destination, m.source, sequence_++}] = m;
  }

  const TraceWorkload& workload_;
  NodeId nodes_;
  LogGp network_;
  std::vector<Time> nic_free_;
  std::vector<std::unique_ptr<Hub>> hubs_;
  std::map<Key, Message> events_;
  std::uint64_t sequence_ = 0;
  Time now_ = -1;
};

TraceWorkload Parsed(std::string_view text) {
  auto trace = ParseGoal(text, "t");
  EXPECT_TRUE(trace.ok()) << trace.status();
  TraceWorkload w;
  if (trace.ok()) w.trace = *std::move(trace);
  return w;
}

RankResult Nanoseconds(std::uint32_t rank, Time finished, Time calc, Time overhead, Time waiting) {
  return {rank, finished * kNanosecond, calc * kNanosecond, overhead * kNanosecond,
          waiting * kNanosecond};
}
void ExpectResult(const FakeFabric& fabric, const RankResult& expected) {
  const RankResult got = fabric.results()[expected.rank];
  const auto values = [](const RankResult& r) {
    return std::tuple(r.rank, r.finished, r.calc, r.overhead, r.waiting);
  };
  EXPECT_EQ(values(got), values(expected));
}

TEST(TraceReplay, PingPongTakesOverheadsAndLatencies) {
  const TraceWorkload w = Parsed(
      "num_ranks 2\nrank 0 {\na: calc 100\nb: send 0b to 1\nb requires a\nc: recv 0b from 1\nc "
      "requires b\n}\nrank 1 {\na: recv 0b from 0\nb: send 0b to 0\nb requires a\n}");
  FakeFabric fabric(w, 2, {});
  fabric.Run();
  EXPECT_TRUE(fabric.done());
  ExpectResult(fabric, Nanoseconds(0, 2160, 100, 30, 2030));
  ExpectResult(fabric, Nanoseconds(1, 1140, 0, 30, 1110));
}

using Slice = std::tuple<std::uint32_t, std::string, Time, Time>;

std::vector<Slice> SlicesOf(const std::vector<RankSlice>& slices) {
  std::vector<Slice> told;
  for (const RankSlice& s : slices)
    told.emplace_back(s.rank, RankStateName(s.state), s.begin / kNanosecond, s.end / kNanosecond);
  return told;
}

TEST(TraceReplay, TheLogSaysWhatARankDoesWhen) {
  const TraceWorkload w = Parsed(
      "num_ranks 2\nrank 0 {\na: calc 100\nb: send 0b to 1\nb requires a\nc: recv 0b from 1\nc "
      "requires b\n}\nrank 1 {\na: recv 0b from 0\nb: send 0b to 0\nb requires a\n}");
  FakeFabric fabric(w, 2, {});
  fabric.log(0).Keep(100);
  fabric.log(1).Keep(2);  // which are the first
  EXPECT_THAT(fabric.log(0).now(), ElementsAre(RankNow{0, RankState::kIdle}));
  fabric.Run();
  EXPECT_THAT(fabric.log(0).now(), ElementsAre(RankNow{0, RankState::kDone}));
  std::vector<RankSlice> slices;
  fabric.log(0).AddSlices(7, 9999 * kNanosecond, &slices);
  EXPECT_EQ(7u, slices.at(0).node);
  EXPECT_THAT(SlicesOf(slices),
              ElementsAre(Slice(0, "computing", 0, 100), Slice(0, "sending", 100, 110),
                          Slice(0, "waiting", 110, 2140), Slice(0, "receiving", 2140, 2160)));
  slices.clear();
  fabric.log(1).AddSlices(8, 9999 * kNanosecond, &slices);
  EXPECT_THAT(SlicesOf(slices),
              ElementsAre(Slice(1, "waiting", 0, 1110), Slice(1, "receiving", 1110, 1130)));
}

TEST(TraceReplay, WhatGoesOnIsASliceUntilNowAndASecondCpuDoesNotEndIt) {
  const TraceWorkload w = Parsed("num_ranks 1\nrank 0 {\ncalc 30 cpu 7\ncalc 50 cpu 3\n}");
  FakeFabric fabric(w, 1, {});
  fabric.log(0).Keep(100);
  fabric.Run();
  std::vector<RankSlice> slices;
  fabric.log(0).AddSlices(0, 50 * kNanosecond, &slices);
  EXPECT_THAT(SlicesOf(slices), ElementsAre(Slice(0, "computing", 0, 50)));
  RankLog log;
  log.Add(4);
  log.Keep(100);
  log.Enter(0, RankState::kWaiting, 10 * kNanosecond);
  slices.clear();
  log.AddSlices(0, 25 * kNanosecond, &slices);
  EXPECT_THAT(SlicesOf(slices), ElementsAre(Slice(4, "waiting", 10, 25)));
}

TEST(TraceReplay, AnEarlyMessageWaitsForItsReceive) {
  const TraceWorkload w = Parsed(
      "num_ranks 2\nrank 0 { send 4b to 1 }\nrank 1 {\na: calc 5000\nb: recv 4b from 0\nb requires "
      "a }");
  FakeFabric fabric(w, 2, {});
  fabric.Run();
  ExpectResult(fabric, Nanoseconds(1, 5020, 5000, 20, 0));
}

TEST(TraceReplay, OneCpuRunsWhatIsReadyInOrderAndTwoCpusRunSideBySide) {
  const TraceWorkload single = Parsed("num_ranks 1\nrank 0 {\ncalc 30\ncalc 50\n}");
  FakeFabric one(single, 1, {});
  one.Run();
  ExpectResult(one, Nanoseconds(0, 80, 80, 0, 0));
  const TraceWorkload two = Parsed("num_ranks 1\nrank 0 {\ncalc 30 cpu 7\ncalc 50 cpu 3\n}");
  FakeFabric fabric(two, 1, {});
  fabric.Run();
  ExpectResult(fabric, Nanoseconds(0, 50, 80, 0, 0));
}

TEST(TraceReplay, OperationsOfOneInstantGoInTraceOrderAndEarlierReadinessGoesFirst) {
  // a and b end at 30. Then d and e become ready, listed in reverse; c has been ready since 0.
  const TraceWorkload w = Parsed(
      "num_ranks 2\nrank 0 {\ne: send 0b to 1 tag 1\nd: send 0b to 1 tag 2\nc: send 0b to 1 tag 3\n"
      "a: calc 30 cpu 1\nb: calc 30\nd requires a\ne requires b\nc irequires b\n}\n"
      "rank 1 {\nrecv 0b from 0 tag 1\nrecv 0b from 0 tag 2\nrecv 0b from 0 tag 3\n}");
  struct Order : TraceActions {
    void SetTimer(Time at, std::uint64_t) override { timers.push_back(at); }
    void SendMessage(std::uint32_t, std::uint32_t, std::uint32_t tag, std::uint64_t) override {
      tags.push_back(tag);
    }
    std::vector<Time> timers;
    std::vector<std::uint32_t> tags;
  } order;
  TraceReplay replay(w, {0}, 10, 10);
  replay.Start(0, order);
  for (std::size_t i = 0; i < order.timers.size(); ++i) {
    replay.OnTimer(order.timers[i], 0, order);
    replay.OnTimer(order.timers[i], 0, order);  // a second call of an instant changes nothing
  }
  EXPECT_THAT(order.tags, ElementsAre(3, 1, 2));
  EXPECT_TRUE(replay.done());
  EXPECT_EQ(replay.results()[0].finished, 30'030);
}

TEST(TraceReplay, IrequiresWaitsForTheStartOnly) {
  const TraceWorkload w = Parsed(
      "num_ranks 2\nrank 0 {\na: recv 4b from 1\nb: calc 100\nb irequires a\nc: calc 40 cpu 1\n"
      "c irequires b\nd: calc 5\nd requires a\n}\nrank 1 { send 4b to 0 }");
  FakeFabric fabric(w, 2, {});
  fabric.Run();
  // b and c start at 0; a is received at 1010 + 20; idle with a posted from 100 to 1010.
  ExpectResult(fabric, Nanoseconds(0, 1035, 145, 20, 910));
}

TEST(TraceReplay, MessagesOfOneChannelMeetReceivesInOrder) {
  const TraceWorkload w = Parsed(
      "num_ranks 2\nrank 0 {\na: send 1b to 1 tag 5\nb: calc 1000\nc: send 2b to 1 tag 5\nb "
      "requires "
      "a\nc requires b\n}\nrank 1 {\nx: recv 2b from 0 tag 5\ny: recv 1b from 0 tag 5\nz: calc "
      "7\nz "
      "requires x\n}");
  FakeFabric fabric(w, 2, {});
  fabric.Run();
  // x takes the first message: z runs from 1030 to 1037, y from 2020 to 2040.
  ExpectResult(fabric, Nanoseconds(1, 2040, 7, 40, 1993));
}

TEST(TraceReplay, ZeroTimesFinishAtOnceHoweverLongTheChain) {
  std::string text = "num_ranks 1\nrank 0 {\nl0: calc 0\n";
  for (int i = 1; i < 50'000; ++i)
    text += fmt::format("l{0}: calc 0\nl{0} requires l{1}\n", i, i - 1);
  const TraceWorkload w = Parsed(text + "}");
  FakeFabric fabric(w, 1, {});
  fabric.Run();
  EXPECT_TRUE(fabric.done());
  EXPECT_EQ(fabric.finished(), 0);
}

TEST(TraceReplay, CalcScaleStretchesOnlyCalc) {
  TraceWorkload w = Parsed(
      "num_ranks 2\nrank 0 {\na: calc 101\nb: send 4b to 1\nb requires a\n}\nrank 1 { recv 4b from "
      "0 }");
  w.calc_scale = 0.5;
  FakeFabric half(w, 2, {});
  half.Run();
  EXPECT_EQ(half.results()[0].calc, 50'500);
  EXPECT_EQ(half.results()[0].overhead, 10'000);
  w.calc_scale = 0;
  FakeFabric none(w, 2, {});
  none.Run();
  EXPECT_EQ(none.finished(), 1'030'000);
}

TEST(TraceReplay, TimesBeyondTheEndOfTimeAreHeldBelowIt) {
  TraceWorkload w = Parsed(
      "num_ranks 1\nrank 0 {\ncalc 1000000000000000\ncalc 1000000000000000\ncalc "
      "1000000000000000\n}");
  w.calc_scale = 1000;
  FakeFabric fabric(w, 1, {});
  fabric.Run();
  EXPECT_TRUE(fabric.done());
  EXPECT_EQ(fabric.finished(), kNever - 1);
}

TEST(TraceReplay, ARankWithoutOperationsIsDoneAtTheStart) {
  const TraceWorkload w = Parsed("num_ranks 1\nrank 0 {}");
  FakeFabric fabric(w, 2, {});
  EXPECT_TRUE(fabric.replay(1).done());
  EXPECT_FALSE(fabric.replay(0).done());
  fabric.Run();
  EXPECT_TRUE(fabric.done());
  EXPECT_EQ(fabric.finished(), 0);
}

TEST(TraceReplay, ADeadlockNamesWhatEachRankWaitsFor) {
  const TraceWorkload w = Parsed(
      "num_ranks 2\nrank 0 {\na: recv 4b from 1 tag 9\nb: send 4b to 1 tag 8\nb requires a\n}\n"
      "rank 1 {\nc: calc 5\na: recv 4b from 0 tag 8\nb: send 4b to 0 tag 9\nb requires a\n}");
  FakeFabric fabric(w, 2, {});
  fabric.Run();
  EXPECT_FALSE(fabric.done());
  EXPECT_THAT(fabric.replay(0).Waits(), ElementsAre(TraceWait{0, 0, 1, 9}));
  EXPECT_THAT(fabric.replay(1).Waits(), ElementsAre(TraceWait{1, 1, 0, 8}));
  EXPECT_EQ(fabric.finished(), kNever);
}

TEST(TraceReplay, MessagesThatNobodyReceivesAreIgnored) {
  const TraceWorkload w = Parsed("num_ranks 2\nrank 0 { calc 5 }\nrank 1 {}");
  struct : TraceActions {
    void SetTimer(Time, std::uint64_t) override {}
    void SendMessage(std::uint32_t, std::uint32_t, std::uint32_t, std::uint64_t) override {}
  } none;
  TraceReplay replay(w, {0}, 1, 1);
  replay.Start(0, none);
  replay.OnMessage(1, 1, 0, 3, 8, none);
  replay.OnMessage(2, 77, 88, 3, 8, none);
  replay.OnTimer(5000, 0, none);
  EXPECT_TRUE(replay.done());
  EXPECT_THAT(replay.Waits(), IsEmpty());
}

TEST(TraceReplay, EveryRankHasOneHubThatListsIt) {
  for (RankMapping mapping : {RankMapping::kBlock, RankMapping::kRoundRobin}) {
    for (std::uint32_t ranks : {1u, 2u, 5u, 32u, 33u}) {
      for (NodeId nodes : {1u, 2u, 7u, 32u, 64u}) {
        std::map<std::uint32_t, NodeId> listed;
        for (NodeId n = 0; n < nodes; ++n) {
          for (std::uint32_t r : RanksOfNode(mapping, n, ranks, nodes)) {
            EXPECT_TRUE(listed.emplace(r, n).second);
          }
        }
        EXPECT_EQ(listed.size(), ranks);
        for (auto [r, n] : listed) EXPECT_EQ(NodeOfRank(mapping, r, ranks, nodes), n);
      }
    }
  }
  EXPECT_THAT(RanksOfNode(RankMapping::kBlock, 1, 8, 3), ElementsAre(3, 4, 5));
  EXPECT_THAT(RanksOfNode(RankMapping::kRoundRobin, 1, 8, 3), ElementsAre(1, 4, 7));
}

TEST(TraceReplay, RandomTracesAddUpAndDoNotDependOnWhereRanksLive) {
  PERCS_TRACE_SEED();
  RandomStream random(test::Seed(), "replay");
  int done = 0;
  for (int i = 0; i < 300; ++i) {
    TraceWorkload w = test::RandomTrace(random, 2 + random.Below(6), 60, i % 2 ? 60 : 3);
    LogGp network;
    network.latency = (1 + random.Below(40)) * 25 * kNanosecond;
    network.picoseconds_per_byte = random.Below(2) * 1000.0;
    FakeFabric spread(w, 8, network);
    spread.Run();
    w.mapping = RankMapping::kBlock;
    FakeFabric together(w, 2, network);
    together.Run();
    EXPECT_TRUE(spread.done() || i % 2 == 0);
    done += spread.done();
    EXPECT_EQ(spread.done(), together.done());
    const auto other = together.results();
    for (const auto& [rank, r] : spread.results()) {
      const RankResult& o = other.at(rank);
      EXPECT_EQ(std::tuple(r.finished, r.calc, r.overhead, r.waiting),
                std::tuple(o.finished, o.calc, o.overhead, o.waiting));
      EXPECT_TRUE(r.finished == kNever || r.finished == r.calc + r.overhead + r.waiting);
    }
  }
  EXPECT_GT(done, 200);
}

std::string Unzipped(const std::string& file) {
  const std::string command =
      std::string("gzip -dc '") + test::SourceDir() + "/deploy/scenarios/traces/" + file + "'";
  std::string text;
  FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return text;
  char buffer[65536];
  for (std::size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, n);
  ::pclose(pipe);
  return text;
}

void ExpectRecordedRun(const std::string& file, std::size_t operations, double milliseconds,
                       double calc_milliseconds) {
  const TraceWorkload w = Parsed(Unzipped(file));
  std::size_t count = 0;
  for (const auto& rank : w.trace.ranks) count += rank.size();
  EXPECT_EQ(count, operations);
  FakeFabric fabric(w, 32, {190 * kNanosecond, 1000.0 / 3, 730 * kNanosecond, 730 * kNanosecond});
  fabric.Run();
  EXPECT_TRUE(fabric.done());
  Time calc = 0;
  for (const auto& [rank, r] : fabric.results()) {
    EXPECT_EQ(r.finished, r.calc + r.overhead + r.waiting);
    calc = std::max(calc, r.calc);
  }
  const double total = static_cast<double>(fabric.finished()) / kMillisecond;
  std::printf("%s: %.3f ms, of which up to %.3f ms calc on a rank\n", file.c_str(), total,
              static_cast<double>(calc) / kMillisecond);
  EXPECT_NEAR(total, milliseconds, 0.05 * milliseconds);
  EXPECT_NEAR(static_cast<double>(calc) / kMillisecond, calc_milliseconds, 0.05);
}

TEST(TraceReplay, TwoStepsOfLammpsTakeTheStatedTime) {
  ExpectRecordedRun("lammps-lj-32-2steps.goal.gz", 37'690, 6.7, 5.3);
}

TEST(TraceReplay, FortyStepsOfLammpsTakeTheStatedTime) {
  ExpectRecordedRun("lammps-lj-32.goal.gz", 119'642, 21, 15.7);
}

// A switch without endpoints runs nothing: ranks are on those that have some.
TEST(TraceTrafficTest, RanksAreOnTheLeavesOfAFatTree) {
  Scenario scenario;
  ASSERT_TRUE(scenario.topology.UseGraph({.kind = GraphSpec::Kind::kFatTree, .radix = 2}).ok());
  scenario.parameters.lr = scenario.parameters.d = scenario.parameters.ll;
  auto trace = ParseGoal(
      "num_ranks 2\nrank 0 {\na: recv 64b from 1 tag 3\n}\n"
      "rank 1 {\na: send 64b to 0 tag 3\n}\n",
      "pair");
  ASSERT_TRUE(trace.ok()) << trace.status();
  TraceWorkload workload;
  workload.trace = *std::move(trace);
  scenario.workload = workload;
  const auto result = RunScenario(scenario, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->ranks.size(), 2u);
}

}  // namespace
}  // namespace percs
