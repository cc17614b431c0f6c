// Method: random programs on a machine that spoils what it can: links that corrupt flits, links
// that go down and come back, packets that take different ways. Every result is compared with a
// plain model: memory is a byte array, an update a line of arithmetic. Exactly once means that the
// sums are right to the last unit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "emulator/base/random.h"
#include "emulator/hfi/atomic_unit.h"
#include "tests/support/executors.h"
#include "tests/support/play.h"
#include "tests/support/seed.h"
#include "tests/support/split_run.h"
#include "tests/unit/emulator/hfi/spoiled_machine.h"
#include "tests/unit/emulator/hfi/window_script.h"

namespace percs {
namespace {

using test::Bytes;
using test::Counted;
using test::kMemory;
using test::Machine;
using test::Pattern;
using test::Script;
using test::Spoiled;

constexpr Time kPropertyLater = test::kSpoiledFrom;
constexpr int kPropertyHubs = 8;

TopologySpec TwoSupernodes() { return {2, 2, 2, 2}; }

std::uint64_t Cut(std::uint64_t value, int size) {
  return size == 8 ? value : value & ((1ull << 8 * size) - 1);
}

// Some machines lose nothing; of three in a row one does not replay what is corrupted.
class Losses {
 public:
  RunResult Play(const Scenario& scenario) {
    const RunResult result = test::PlayPrograms(scenario);
    resent_ += result.total.packets_resent;
    return result;
  }
  ~Losses() { EXPECT_GT(resent_, 0u) << "nothing was lost: the test shows nothing"; }

 private:
  std::uint64_t resent_ = 0;
};

// One hub after the other updates its own place at every other hub, with every operation, size and
// kind: the model follows it step by step, so each value that comes back is known.
TEST(HfiPropertyTest, EveryAtomicDoesWhatArithmeticDoes) {
  PERCS_TRACE_SEED();
  Losses losses;
  for (std::uint64_t round = 0; round < 3; ++round) {
    RandomStream random(test::Seed() + round, "atomics");
    std::vector<Script> scripts;
    std::vector<Bytes> memory(kPropertyHubs, Bytes(4096));
    for (NodeId node = 0; node < kPropertyHubs; ++node) {
      Script script(node, 1);
      script.Open(0, 4096 + 512).At(kPropertyLater);
      const NodeId target = (node + 1 + random.Below(kPropertyHubs - 1)) % kPropertyHubs;
      const Address place = 512 * node;
      for (int op = 0; op < kAtomicOps; ++op) {
        for (const int size : {1, 2, 4, 8}) {
          for (const bool fetch : {false, true}) {
            std::vector<AtomicUpdate> updates(1 + random.Below(kPackedAtomicsMax));
            std::vector<std::uint64_t> before;
            for (AtomicUpdate& u : updates) {
              u.op = static_cast<AtomicOp>(op);
              u.size = static_cast<std::uint8_t>(size);
              u.fetch = fetch;
              u.address = kMemory + place + static_cast<Address>(size) * random.Below(4);
              u.operand = random.Next();
              std::uint64_t old = 0;
              std::memcpy(&old, &memory[target][u.address - kMemory], u.size);
              // A swap that compares with what is there is worth as much as one that does not.
              u.compare = random.Below(2) ? old : random.Next();
              std::uint64_t now = 0;
              switch (u.op) {
                case AtomicOp::kAdd:
                  now = old + u.operand;
                  break;
                case AtomicOp::kAnd:
                  now = old & u.operand;
                  break;
                case AtomicOp::kOr:
                  now = old | u.operand;
                  break;
                case AtomicOp::kXor:
                  now = old ^ u.operand;
                  break;
                case AtomicOp::kCompareSwap:
                  now = old == Cut(u.compare, size) ? u.operand : old;
                  break;
              }
              std::memcpy(&memory[target][u.address - kMemory], &now, u.size);
              if (fetch) before.push_back(old);
            }
            script.Update(target, 0, updates).expect_values = before;
          }
        }
      }
      // The packets of one hub go to one other; each has its place there.
      Bytes part(memory[target].begin() + static_cast<std::ptrdiff_t>(place),
                 memory[target].begin() + static_cast<std::ptrdiff_t>(place) + 512);
      script.Get(target, 0, kMemory + place, kMemory + 4096, 512);
      script.Expect(kMemory + 4096, part);
      scripts.push_back(script);
    }
    for (Script& script : scripts) script.Step(WindowStep::Kind::kCompute).time = kMillisecond;
    for (NodeId node = 0; node < kPropertyHubs; ++node) {
      scripts[node].Expect(kMemory, memory[node]);
    }
    const RunResult result =
        losses.Play(Spoiled(Machine(TwoSupernodes(), scripts), test::Seed() + round));
    EXPECT_GE(Counted(result, HfiCounter::kAtomics), kPropertyHubs * 40u);
  }
}

// All hubs add to one counter at once, without waiting: the values that come back are 0, 1, 2, ...,
// each once.
TEST(HfiPropertyTest, FetchAndAddHandsOutEveryNumberOnce) {
  PERCS_TRACE_SEED();
  Losses losses;
  for (std::uint64_t round = 0; round < 3; ++round) {
    constexpr std::uint64_t kEach = 60;
    std::vector<Script> scripts;
    for (NodeId node = 0; node < kPropertyHubs; ++node) {
      Script script(node, 1);
      script.Open(0, 64).At(kPropertyLater);
      for (std::uint64_t i = 0; i < kEach; ++i) {
        WindowStep& step = script.Update(3, 0, {{AtomicOp::kAdd, 4, true, kMemory, 1}});
        step.wait = false;
        step.keep_values = true;
      }
      script.AwaitAll();
      scripts.push_back(script);
    }
    const RunResult result =
        losses.Play(Spoiled(Machine(TwoSupernodes(), scripts), test::Seed() + 10 + round));
    std::vector<std::uint64_t> values;
    for (const auto& program : result.window_programs)
      values.insert(values.end(), program.values.begin(), program.values.end());
    std::sort(values.begin(), values.end());
    ASSERT_EQ(values.size(), kPropertyHubs * kEach);
    for (std::uint64_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], i);
    EXPECT_EQ(Counted(result, HfiCounter::kAtomics), kPropertyHubs * kEach);
  }
}

// Writes and reads of random sizes between all hubs at once, each to a place of its own.
TEST(HfiPropertyTest, RdmaMovesEveryByteOnceAndToItsPlace) {
  PERCS_TRACE_SEED();
  Losses losses;
  for (std::uint64_t round = 0; round < 3; ++round) {
    RandomStream random(test::Seed() + round, "rdma");
    constexpr std::uint64_t kArea = 32768;  // of each hub at each other
    std::vector<Bytes> memory(kPropertyHubs, Bytes(kPropertyHubs * kArea));
    std::vector<Script> scripts;
    std::uint64_t written = 0;
    for (NodeId node = 0; node < kPropertyHubs; ++node) {
      Script script(node, 1);
      script.Open(0, 3 * kPropertyHubs * kArea);
      const Address source = kMemory + kPropertyHubs * kArea;
      const Bytes data = Pattern(kPropertyHubs * kArea, 100 * round + node);
      script.Write(source, data);
      script.At(kPropertyLater);
      for (NodeId target = 0; target < kPropertyHubs; ++target) {
        std::uint64_t at = random.Below(100);
        while (at < kArea) {
          const std::uint64_t size = std::min<std::uint64_t>(1 + random.Below(9000), kArea - at);
          const std::uint64_t from =
              random.Below(static_cast<std::uint32_t>(kPropertyHubs * kArea - size));
          WindowStep& put = script.Put(target, 0, source + from, kMemory + node * kArea + at, size);
          put.wait = random.Below(4) == 0;
          std::copy_n(data.begin() + static_cast<std::ptrdiff_t>(from), size,
                      memory[target].begin() + static_cast<std::ptrdiff_t>(node * kArea + at));
          written += size;
          at += size + random.Below(100);
        }
      }
      script.AwaitAll();
      scripts.push_back(script);
    }
    for (NodeId node = 0; node < kPropertyHubs; ++node) {
      Script& script = scripts[node];
      script.At(20 * kMillisecond);
      script.Expect(kMemory, memory[node]);
      // All of another's memory, read at once.
      const NodeId other = (node + 3) % kPropertyHubs;
      script.Get(other, 0, kMemory, kMemory + 2 * kPropertyHubs * kArea, kPropertyHubs * kArea);
      script.Expect(kMemory + 2 * kPropertyHubs * kArea, memory[other]);
    }
    const RunResult result =
        losses.Play(Spoiled(Machine(TwoSupernodes(), scripts), test::Seed() + 20 + round));
    EXPECT_EQ(Counted(result, HfiCounter::kRdmaBytesWritten), written);
    EXPECT_EQ(Counted(result, HfiCounter::kRdmaBytesRead), kPropertyHubs * kPropertyHubs * kArea);
  }
}

// Immediate, FIFO and IP packets are lost where links lose them, and never doubled or changed. What
// was neither delivered nor dropped with a reason would be missing from the sums.
TEST(HfiPropertyTest, UnreliablePacketsArriveOnceOrAreCounted) {
  PERCS_TRACE_SEED();
  std::uint64_t dropped_in_all = 0;
  for (std::uint64_t round = 0; round < 3; ++round) {
    constexpr std::uint64_t kEach = 90;
    const WindowOp formats[] = {WindowOp::kImmediateSend, WindowOp::kFifoSend, WindowOp::kIpSend};
    std::vector<Script> scripts;
    for (NodeId node = 0; node < kPropertyHubs; ++node) {
      Script script(node, 1);
      script.Reserve(0);
      script.Fifos(128, kEach * 2);
      script.At(kPropertyLater);
      for (std::uint64_t i = 0; i < kEach; ++i) {
        // All of one sender to one receiver, so every packet that comes has the one content.
        const Bytes data = Pattern(100, (node + 5) % kPropertyHubs);
        script.Send(formats[i % 3], (node + 5) % kPropertyHubs, 0, data);
      }
      script.At(10 * kMillisecond);
      scripts.push_back(script);
    }
    const RunResult result =
        test::PlayPrograms(Spoiled(Machine(TwoSupernodes(), scripts), test::Seed() + 30 + round));
    std::uint64_t received = 0;
    for (const auto& program : result.window_programs) received += program.received;
    std::uint64_t dropped = 0;
    for (const std::uint64_t packets : result.total.packets_dropped) dropped += packets;
    EXPECT_EQ(received + dropped, kPropertyHubs * kEach);
    EXPECT_EQ(Counted(result, HfiCounter::kSent) + Counted(result, HfiCounter::kSendDropped),
              kPropertyHubs * kEach);
    dropped_in_all += dropped;
    EXPECT_GT(received, kPropertyHubs * kEach / 2);
  }
  EXPECT_GT(dropped_in_all, 0u) << "nothing was lost: the test shows nothing";
}

// The same in one thread, in three, and split over processes: digests, results and values are
// equal.
TEST(HfiPropertyTest, PlacementChangesNothing) {
  PERCS_TRACE_SEED();
  RandomStream random(test::Seed(), "placement");
  std::vector<Script> scripts;
  for (NodeId node = 0; node < kPropertyHubs; ++node) {
    Script script(node, 1);
    script.Open(static_cast<WindowId>(node), 1 << 17).At(kPropertyLater);
    script.Write(kMemory, Pattern(1 << 16, node));
    for (int i = 0; i < 12; ++i) {
      const NodeId to = (node + 1 + random.Below(kPropertyHubs - 1)) % kPropertyHubs;
      const auto window = static_cast<WindowId>(to);
      script.Put(to, window, kMemory, kMemory + 65536, 1 + random.Below(20000)).wait = false;
      script.Get(to, window, kMemory, kMemory + 65536, 1 + random.Below(20000)).wait =
          random.Below(2);
      script.Send(WindowOp::kFifoSend, to, window, Pattern(random.Below(2048), 1)).wait = false;
      WindowStep& add =
          script.Update(to, window, {{AtomicOp::kAdd, 8, true, kMemory + 8 * random.Below(8), 1}});
      add.keep_values = true;
      script.Fence(random.Below(2), true).wait = false;
    }
    script.AwaitAll();
    scripts.push_back(script);
  }
  const Scenario scenario = Spoiled(Machine(TwoSupernodes(), scripts), test::Seed());
  const RunResult one = test::PlayPrograms(scenario);
  test::SplitOptions split;
  split.processes = 3;
  const auto several = test::SplitRun(scenario, split);
  ASSERT_TRUE(several.ok()) << several.status();
  EXPECT_EQ(one.digest, several->digest);
  ASSERT_EQ(one.window_programs.size(), several->window_programs.size());
  for (std::size_t i = 0; i < one.window_programs.size(); ++i) {
    EXPECT_EQ(one.window_programs[i].values, several->window_programs[i].values);
    EXPECT_EQ(one.window_programs[i].finished, several->window_programs[i].finished);
  }
  RunOptions threaded;
  threaded.threads = 3;
  threaded.executor = &test::kThreads;
  const RunResult threads = test::PlayPrograms(scenario, threaded);
  EXPECT_EQ(one.digest, threads.digest);
}

}  // namespace
}  // namespace percs
