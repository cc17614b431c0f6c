// RDMA by way of FIFOs, datagrams that are gathered and scattered, multicast. Method: programs
// outside ask for random operations at random times on a machine that corrupts, cuts and reorders;
// what is due at a window is written down when it is asked for, and crossed out when it comes.
// Nothing else may come, nor anything twice; what is reliable is all there in the end, and what is
// not is counted packet by packet.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "tests/support/seed.h"
#include "tests/support/window_runs.h"
#include "tests/unit/emulator/hfi/spoiled_machine.h"
#include "tests/unit/emulator/hfi/window_script.h"

namespace percs {
namespace {

using test::Bytes;
using test::Counted;
using test::kFifos;
using test::kMemory;
using test::Pattern;

constexpr NodeId kFormatHubs = 8;
constexpr Time kFormatsLater = test::kSpoiledFrom, kCalm = 60 * kMillisecond;
constexpr std::uint64_t kMemoryBytes = 1 << 19;  // of a hub, in context 0
constexpr WindowId kOtherJob = 2;                // a window with this number is job 2's

JobKey JobOf(WindowId window) { return window == kOtherJob ? 2 : 1; }
std::uint64_t PacketsOf(std::uint64_t bytes) {
  return (bytes + kPacketBytesMax - 1) / kPacketBytesMax;
}

// A packet in a receive FIFO, or a datagram where it was to be scattered.
struct Arrival {
  WindowOp format = WindowOp::kFifoSend;
  NodeId from = 0;
  WindowId from_window = 0;
  std::uint64_t offset = 0;
  Bytes data;
  auto operator<=>(const Arrival&) const = default;
};

using Due = std::map<std::pair<NodeId, WindowId>, std::multiset<Arrival>>;

class Campaign final : public WindowListener {
 public:
  struct Asked {
    Time at = 0;
    NodeId node = 0;
    WindowOperation operation;
    Status may_be = Status::kOk;  // beside kOk
    std::optional<WindowEvent> ended;
  };

  explicit Campaign(std::uint64_t seed) : random(seed, "formats"), seed_(seed) {
    scenario.topology = {2, 2, 2, 2};
    for (NodeId node = 0; node < kFormatHubs; ++node) {
      memory.push_back(Pattern(kMemoryBytes, seed * kFormatHubs + node));
      Open(node, 0, 64, 1024);
      Ask(0, node, 0, WindowOp::kRegister).operation.address = kMemory;
      asked.back().operation.bytes = kMemoryBytes;
      Ask(0, node, 0, WindowOp::kWriteMemory).operation.address = kMemory;
      asked.back().operation.data = memory[node];
    }
    cursor_.assign(kFormatHubs, 0);
  }

  Asked& Ask(Time at, NodeId node, WindowId window, WindowOp op) {
    Asked& a = asked.emplace_back();
    a.at = at;
    a.node = node;
    a.operation.op = op;
    a.operation.id = asked.size();
    a.operation.window = window;
    a.operation.job = JobOf(window);
    return a;
  }
  Asked& AskPeer(Time at, NodeId node, WindowId window, WindowOp op, NodeId peer,
                 WindowId peer_window) {
    Asked& a = Ask(at, node, window, op);
    a.operation.node = peer;
    a.operation.peer_window = peer_window;
    return a;
  }
  // With FIFOs in a context of their own.
  void Open(NodeId node, WindowId window, std::uint32_t send, std::uint32_t receive) {
    Ask(0, node, window, WindowOp::kReserve);
    const auto context = static_cast<ContextId>(window + 1);
    WindowOperation& memory_of = Ask(0, node, window, WindowOp::kRegister).operation;
    memory_of.context = context;
    memory_of.address = kFifos;
    memory_of.bytes = (send + receive) * std::uint64_t{kPacketBytesMax};
    WindowOperation& configure = Ask(0, node, window, WindowOp::kConfigure).operation;
    configure.context = context;
    configure.send_fifo = {kFifos, send};
    configure.receive_fifo = {kFifos + send * std::uint64_t{kPacketBytesMax}, receive};
  }

  // Memory that nobody was given before, with gaps: one piece, or several in any order.
  std::uint64_t Take(NodeId node, std::uint64_t bytes) {
    const std::uint64_t at = cursor_[node] + random.Below(40);
    cursor_[node] = at + bytes;
    EXPECT_LE(cursor_[node], kMemoryBytes);
    return at;
  }
  std::vector<MemorySegment> TakeSegments(NodeId node, std::uint32_t bytes) {
    std::vector<MemorySegment> segments;
    while (bytes > 0) {
      const std::uint32_t piece = segments.size() == 6 ? bytes : 1 + random.Below(bytes);
      segments.push_back({0, kMemory + Take(node, piece), piece});
      std::swap(segments.back(),
                segments[random.Below(static_cast<std::uint32_t>(segments.size()))]);
      bytes -= piece;
    }
    return segments;
  }
  // What is in them from the start.
  Bytes Gathered(NodeId node, const std::vector<MemorySegment>& segments) const {
    Bytes data;
    for (const MemorySegment& s : segments) {
      const auto from = memory[node].begin() + static_cast<std::ptrdiff_t>(s.address - kMemory);
      data.insert(data.end(), from, from + s.bytes);
    }
    return data;
  }
  // A transfer comes packet by packet, in any order.
  void DueAt(NodeId node, WindowId window, WindowOp format, NodeId from, WindowId from_window,
             const Bytes& data) {
    for (std::uint64_t done = 0; done < data.size(); done += kPacketBytesMax) {
      const std::uint64_t end = std::min<std::uint64_t>(done + kPacketBytesMax, data.size());
      due[{node, window}].insert({format, from, from_window, done,
                                  Bytes(data.begin() + static_cast<std::ptrdiff_t>(done),
                                        data.begin() + static_cast<std::ptrdiff_t>(end))});
    }
  }

  void OnWindowEvent(const WindowEvent& event) override {
    if (event.kind == WindowEvent::Kind::kReceived) return received.push_back(event);
    if (event.kind == WindowEvent::Kind::kNotification) return notified.push_back(event);
    Asked& a = asked[event.id - 1];
    EXPECT_FALSE(a.ended.has_value()) << WindowOpName(event.op) << " ended twice";
    a.ended = event;
  }

  // All that was asked for ends as it may, and what memory is in the end is in `memory_at_last`.
  RunResult Run(double flit_error_rate) {
    std::vector<std::size_t> reads;
    for (NodeId node = 0; node < kFormatHubs; ++node) {
      Ask(kCalm, node, 0, WindowOp::kReadMemory).operation.address = kMemory;
      asked.back().operation.bytes = kMemoryBytes;
      reads.push_back(asked.size() - 1);
    }
    RunOptions options;
    for (const Asked& a : asked) {
      options.commands.push_back({a.at, [this, &a](Fabric& fabric, Time at) {
                                    return fabric.Issue(a.node, at, a.operation, this);
                                  }});
    }
    std::stable_sort(options.commands.begin(), options.commands.end(),
                     [](const TimedCommand& a, const TimedCommand& b) { return a.at < b.at; });
    options.on_result = [this](const NodeResult& result) { stats.push_back(result.stats); };
    scenario.routing.fifo.mode = RouteMode::kHwDirectStriped;
    const auto result = RunScenario(test::Spoiled(scenario, seed_, flit_error_rate), options);
    EXPECT_TRUE(result.ok()) << result.status();
    if (!result.ok()) return {};
    for (const std::string& violation : result->violations) ADD_FAILURE() << violation;
    for (const Asked& a : asked) {
      const char* const name = WindowOpName(a.operation.op);
      if (!a.ended) {
        EXPECT_EQ(a.operation.op, WindowOp::kIpReceive) << name << " did not end";
        continue;
      }
      const bool right = a.ended->status == Status::kOk || a.ended->status == a.may_be;
      EXPECT_TRUE(right) << name << ": " << WindowStatusName(a.ended->status);
      EXPECT_TRUE(a.at == kCalm || a.ended->at < kCalm)
          << name << " is not over when memory is looked at";
    }
    for (const std::size_t read : reads)
      memory_at_last.push_back(asked[read].ended ? asked[read].ended->data : Bytes());
    return *result;
  }

  // Crosses it out.
  void Came(NodeId node, WindowId window, const Arrival& arrival) {
    auto& here = due[{node, window}];
    const auto found = here.find(arrival);
    if (found != here.end()) return (void)here.erase(found);
    ADD_FAILURE() << WindowOpName(arrival.format) << " of " << arrival.data.size()
                  << " bytes from window " << arrival.from_window << " of " << arrival.from
                  << " at window " << window << " of " << node
                  << ": damaged, there before, or never sent";
  }
  void AllReceivedCame() {
    for (const WindowEvent& e : received)
      Came(e.node, e.window, {e.op, e.peer, e.peer_window, e.offset, e.data});
  }
  // Of a transfer.
  bool SomeAreDue(NodeId node, WindowId window, NodeId from, const Bytes& data) {
    const auto& here = due[{node, window}];
    return std::any_of(here.begin(), here.end(), [&](const Arrival& a) {
      return a.from == from && a.offset + a.data.size() <= data.size() &&
             std::equal(a.data.begin(), a.data.end(),
                        data.begin() + static_cast<std::ptrdiff_t>(a.offset));
    });
  }
  std::uint64_t StillDue() const {
    std::uint64_t packets = 0;
    for (const auto& [window, here] : due) packets += here.size();
    return packets;
  }

  // Every place to which a datagram came has all of it, where nothing was to come there is what was
  // there before, and each datagram came once. Returns how many.
  std::uint64_t DatagramsCame() {
    std::uint64_t came = 0;
    std::vector<Bytes> expected = memory;
    for (const Asked& a : asked) {
      if (a.operation.op != WindowOp::kIpReceive) continue;
      Bytes place;
      for (const MemorySegment& s : a.operation.segments) {
        const auto at = static_cast<std::ptrdiff_t>(s.address - kMemory);
        const auto begin = memory_at_last[a.node].begin() + at;
        place.insert(place.end(), begin, begin + s.bytes);
        // Beyond the datagram there may be parts of one that was given up.
        std::copy(begin, begin + s.bytes, expected[a.node].begin() + at);
      }
      if (!a.ended) continue;
      ++came;
      EXPECT_LE(a.ended->bytes, place.size());
      place.resize(std::min<std::uint64_t>(a.ended->bytes, place.size()));
      Came(a.node, a.operation.window,
           {WindowOp::kIpReceive, a.ended->peer, a.ended->peer_window, 0, place});
    }
    for (NodeId node = 0; node < kFormatHubs; ++node)
      EXPECT_TRUE(expected[node] == memory_at_last[node]) << "around places of " << node;
    return came;
  }

  Scenario scenario;
  RandomStream random;
  std::vector<Bytes> memory;  // of each hub, as it was written at the start
  std::vector<Bytes> memory_at_last;
  std::deque<Asked> asked;
  Due due;
  std::vector<WindowEvent> received, notified;
  std::vector<NodeStats> stats;

 private:
  std::uint64_t seed_;
  std::vector<std::uint64_t> cursor_;
};

// A packet that a link cut in two is dropped twice: its front, and its rest as one that was
// synthesised.
std::uint64_t DroppedInAll(const RunResult& result) {
  std::uint64_t dropped = 0;
  for (const std::uint64_t packets : result.total.packets_dropped) dropped += packets;
  return dropped - result.total.packets_synthesised;
}
// Unreliable packets that programs had sent, whether they left the hub or not.
std::uint64_t Attempted(const NodeStats& of) {
  NodeStats stats = of;
  std::uint64_t packets = 0;
  for (const int hfi : {0, 1})
    packets += stats.Hfi(hfi, HfiCounter::kSent) + stats.Hfi(hfi, HfiCounter::kSendDropped);
  return packets;
}

// From FIFOs to memory, from memory to FIFOs of others and to the own one, from FIFO to FIFO; and
// more than a small FIFO has room for, where every packet is in a slot or its operation failed.
TEST(HfiFormatsPropertyTest, RdmaByWayOfFifosBringsEveryPacketOnceOrSaysThatItFailed) {
  PERCS_TRACE_SEED();
  constexpr WindowId kSmall = 1;
  constexpr std::uint32_t kSmallSlots = 8;
  std::uint64_t resent = 0;
  for (std::uint64_t round = 0; round < 3; ++round) {
    Campaign campaign(test::Seed() + 40 + round);
    RandomStream& random = campaign.random;
    for (NodeId node = 0; node < kFormatHubs; ++node) campaign.Open(node, kSmall, 4, kSmallSlots);
    std::vector<Bytes> expected = campaign.memory;
    std::multiset<std::tuple<NodeId, NodeId, std::uint64_t>> notifications;
    std::map<NodeId, std::uint64_t> small_packets;  // by hub
    std::vector<std::pair<const Campaign::Asked*, Bytes>>
        small;  // operations, with what they bring
    for (NodeId node = 0; node < kFormatHubs; ++node) {
      for (int i = 0; i < 60; ++i) {
        const NodeId peer = (node + 1 + random.Below(kFormatHubs - 1)) % kFormatHubs;
        const int kind = static_cast<int>(random.Below(5));
        const WindowId window = kind == 4 ? kSmall : WindowId{0};
        const WindowOp op = kind == 2 ? WindowOp::kRdmaRead : WindowOp::kRdmaWrite;
        Campaign::Asked& a = campaign.AskPeer(kFormatsLater + random.Below(90'000) * kNanosecond,
                                              node, 0, op, peer, window);
        WindowOperation& operation = a.operation;
        operation.to_fifo = kind != 0;
        const NodeId source = kind == 2 ? peer : node;
        Bytes data;
        if (kind == 0 || kind == 3) {
          data = operation.data = Pattern(1 + random.Below(kPacketBytesMax), random.Next());
        } else {
          operation.bytes = 1 + random.Below(9'000);
          const std::uint64_t from =
              random.Below(static_cast<std::uint32_t>(kMemoryBytes / 2 - operation.bytes));
          (kind == 2 ? operation.peer_address : operation.address) = kMemory + from;
          data = campaign.Gathered(
              source, {{0, kMemory + from, static_cast<std::uint32_t>(operation.bytes)}});
        }
        if (kind == 0) {
          // The lower half is what others send.
          const std::uint64_t to = kMemoryBytes / 2 + campaign.Take(peer, data.size());
          operation.peer_address = kMemory + to;
          std::copy(data.begin(), data.end(),
                    expected[peer].begin() + static_cast<std::ptrdiff_t>(to));
        } else if (kind == 2) {
          campaign.DueAt(node, 0, op, peer, 0, data);
        } else {
          campaign.DueAt(peer, window, op, node, 0, data);
        }
        if (kind == 4) {
          a.may_be = Status::kReceiveFifoFull;
          small.emplace_back(&a, data);
          small_packets[peer] += PacketsOf(data.size());
        } else if (op == WindowOp::kRdmaWrite && random.Below(2) == 0) {
          operation.notify = true;
          notifications.insert({peer, node, data.size()});
        }
      }
    }
    const RunResult result = campaign.Run(0.005);
    resent += result.total.packets_resent;
    for (NodeId node = 0; node < kFormatHubs; ++node)
      EXPECT_TRUE(campaign.memory_at_last[node] == expected[node]) << node;
    campaign.AllReceivedCame();
    std::uint64_t refused = 0;
    for (const auto& [node, packets] : small_packets)
      refused += packets - std::min<std::uint64_t>(packets, kSmallSlots);
    EXPECT_GT(refused, 0u);
    EXPECT_EQ(campaign.StillDue(), refused) << "packets for FIFOs with room are all there";
    EXPECT_EQ(Counted(result, HfiCounter::kFaults), refused) << "and the others are counted";
    for (const auto& [a, data] : small) {
      const bool failed = a->ended && a->ended->status == Status::kReceiveFifoFull;
      EXPECT_EQ(campaign.SomeAreDue(a->operation.node, kSmall, a->node, data), failed);
    }
    for (const WindowEvent& e : campaign.notified) {
      const auto found = notifications.find({e.node, e.peer, e.bytes});
      ASSERT_NE(found, notifications.end()) << "nobody notified, or twice";
      notifications.erase(found);
    }
    EXPECT_TRUE(notifications.empty());
  }
  EXPECT_GT(resent, 0u) << "nothing was lost: the test shows nothing";
}

// A datagram comes as a whole, to one place, or its lost parts are counted and its place goes to
// the next.
TEST(HfiFormatsPropertyTest, GatheredDatagramsArriveOnceAndWholeOrAreCounted) {
  PERCS_TRACE_SEED();
  std::uint64_t lost_in_all = 0;
  for (std::uint64_t round = 0; round < 4; ++round) {
    constexpr std::uint32_t kBytesMax = 9'000;
    Campaign campaign(test::Seed() + 50 + round);
    campaign.scenario.parameters.windows.reassembly = 300 * kMicrosecond;
    RandomStream& random = campaign.random;
    for (NodeId node = 0; node < kFormatHubs; ++node) {
      campaign.Open(node, 1, 4, 4);
      for (WindowId window = 0; window < 2; ++window) {
        for (int place = 0; place < 10; ++place) {
          campaign.Ask(kMicrosecond, node, window, WindowOp::kIpReceive).operation.segments =
              campaign.TakeSegments(node, kBytesMax);
        }
      }
    }
    std::uint64_t sent = 0, packets = 0;
    for (NodeId node = 0; node < kFormatHubs; ++node) {
      for (int i = 0; i < 20; ++i, ++sent) {
        const NodeId peer = (node + 1 + random.Below(kFormatHubs - 1)) % kFormatHubs;
        const auto from = static_cast<WindowId>(random.Below(2)),
                   to = static_cast<WindowId>(random.Below(2));
        const Time at = kFormatsLater + random.Below(i < 12 ? 90'000 : 900'000) * kNanosecond;
        Campaign::Asked& a = campaign.AskPeer(at, node, from, WindowOp::kIpSend, peer, to);
        a.may_be = Status::kNoRoute;
        const std::uint32_t bytes = 1 + random.Below(random.Below(3) == 0 ? 200 : kBytesMax);
        a.operation.segments = campaign.TakeSegments(node, bytes);
        campaign.due[{peer, to}].insert(
            {WindowOp::kIpReceive, node, from, 0, campaign.Gathered(node, a.operation.segments)});
        packets += PacketsOf(bytes);
      }
    }
    const RunResult result = campaign.Run(0.002);
    const std::uint64_t came = campaign.DatagramsCame(), dropped = DroppedInAll(result);
    const std::uint64_t attempted = Attempted(result.total);
    EXPECT_LE(attempted, packets);
    EXPECT_TRUE(attempted == packets || Counted(result, HfiCounter::kSendDropped) > 0);
    EXPECT_EQ(Counted(result, HfiCounter::kReceived) + dropped, attempted) << "every part of one";
    EXPECT_EQ(Counted(result, HfiCounter::kDatagrams), came);
    EXPECT_EQ(campaign.StillDue(), sent - came);
    // Of a datagram that did not come parts are missing, and if there were others, its place was
    // given up.
    EXPECT_GE(dropped, sent - came);
    EXPECT_LE(Counted(result, HfiCounter::kDatagramsLost), sent - came);
    EXPECT_TRUE(campaign.received.empty());
    EXPECT_GT(came, sent / 4);
    lost_in_all += Counted(result, HfiCounter::kDatagramsLost);
  }
  EXPECT_GT(lost_in_all, 0u) << "nothing was lost: the test shows nothing";
}

struct GroupSent {
  NodeId source = 0;
  std::vector<NodeId> members;
  std::uint64_t packets = 0, datagrams = 0;
};

// Two groups; one packet by way of the FIFO, or several that are gathered. Window 0 of every hub
// has joined both, window 1 the first until `kLeave`, and a window of another job the first.
TEST(HfiFormatsPropertyTest, MulticastReachesWhoJoinedAtMostOnceAndLossesAreCounted) {
  PERCS_TRACE_SEED();
  constexpr Time kLeave = kFormatsLater + 200 * kMicrosecond;
  std::uint64_t lost_in_all = 0;
  for (std::uint64_t round = 0; round < 4; ++round) {
    Campaign campaign(test::Seed() + 60 + round);
    RandomStream& random = campaign.random;
    campaign.scenario.topology.multicast = {
        {"all", "sn0-d0-h0", {}}, {"some", "sn1-d0-h1", {"sn0-d0-h1", "sn0-d1-h0", "sn1-d1-h0"}}};
    GroupSent groups[] = {{0, {1, 2, 3, 4, 5, 6, 7}}, {5, {1, 2, 6}}};
    const auto join = [&campaign](Time at, NodeId node, WindowId window, WindowOp op,
                                  NodeId group) {
      campaign.Ask(at, node, window, op).operation.node = kFormatHubs + group;
    };
    for (NodeId node = 0; node < kFormatHubs; ++node) {
      for (const WindowId window : {WindowId{1}, kOtherJob}) {
        campaign.Open(node, window, 4, 128);
        join(kMicrosecond, node, window, WindowOp::kJoin, 0);
      }
      join(kMicrosecond, node, 0, WindowOp::kJoin, 0);
      join(kMicrosecond, node, 0, WindowOp::kJoin, 0);  // once is enough
      join(kMicrosecond, node, 0, WindowOp::kJoin, 1);
      join(kLeave, node, 1, WindowOp::kLeave, 0);
      for (int place = 0; place < 50; ++place) {
        campaign.Ask(kMicrosecond, node, 0, WindowOp::kIpReceive).operation.segments =
            campaign.TakeSegments(node, 6'000);
      }
    }
    std::map<Bytes, Time> sent_at;
    for (NodeId g = 0; g < 2; ++g) {
      GroupSent& group = groups[g];
      for (int i = 0; i < 80; ++i) {
        const Time at = kFormatsLater + random.Below(400'000) * kNanosecond;
        Campaign::Asked& a =
            campaign.AskPeer(at, group.source, 0, WindowOp::kIpSend, kFormatHubs + g, 9);
        a.may_be = Status::kNoRoute;
        const bool gathered = i % 4 == 0;
        Bytes data;
        if (gathered) {
          a.operation.segments = campaign.TakeSegments(group.source, 16 + random.Below(5'900));
          data = campaign.Gathered(group.source, a.operation.segments);
        } else {
          data = a.operation.data = Pattern(16 + random.Below(2'000), random.Next());
        }
        ++(gathered ? group.datagrams : group.packets);
        sent_at[data] = at;
        for (const NodeId member : group.members) {
          const WindowOp format = gathered ? WindowOp::kIpReceive : WindowOp::kIpSend;
          campaign.due[{member, 0}].insert({format, group.source, 0, 0, data});
          if (g == 0 && !gathered && at < kLeave)
            campaign.due[{member, 1}].insert({format, group.source, 0, 0, data});
        }
      }
    }
    const RunResult result = campaign.Run(0.002);
    const std::uint64_t came = campaign.DatagramsCame(), dropped = DroppedInAll(result);
    campaign.AllReceivedCame();
    // Both windows of a hub had what one of them had before the other left.
    std::map<NodeId, std::set<Bytes>> window0, window1;
    std::uint64_t of_window1 = 0;
    for (const WindowEvent& e : campaign.received) {
      if (e.window == 0 && e.peer == groups[0].source && e.at < kLeave)
        window0[e.node].insert(e.data);
      if (e.window == 1) ++of_window1, window1[e.node].insert(e.data);
    }
    for (const auto& [node, packets] : window0) {
      EXPECT_TRUE(
          std::includes(window1[node].begin(), window1[node].end(), packets.begin(), packets.end()))
          << node;
    }
    EXPECT_GT(of_window1, 0u);
    // Each packet that was sent is a copy for every member; a copy that is dropped on its way has
    // been all of those that would have been made of it.
    std::uint64_t copies = 0, datagrams = 0;
    for (const GroupSent& group : groups) {
      copies += Attempted(campaign.stats[group.source]) * group.members.size();
      datagrams += group.datagrams * group.members.size();
    }
    const std::uint64_t taken = Counted(result, HfiCounter::kReceived) - of_window1;
    EXPECT_LE(taken + dropped, copies);
    EXPECT_GE(taken + dropped * (kFormatHubs - 1), copies);
    EXPECT_EQ(Counted(result, HfiCounter::kDatagrams), came);
    EXPECT_LE(Counted(result, HfiCounter::kDatagramsLost), datagrams - came);
    EXPECT_GT(taken, copies / 2);
    lost_in_all += dropped;
  }
  EXPECT_GT(lost_in_all, 0u) << "nothing was lost: the test shows nothing";
}

}  // namespace
}  // namespace percs
