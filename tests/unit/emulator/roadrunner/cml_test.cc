// CML on real blades: messages over all four distances against what was sent, order and tags, slots
// that run out, late ranks, both protocols, and every error by its rule.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>

#include "emulator/base/random.h"
#include "emulator/roadrunner/cluster.h"
#include "tests/support/seed.h"

namespace percs::roadrunner {
namespace {

constexpr std::uint32_t kHeap = 160 * 1024;

std::unique_ptr<Cluster> MakeCluster(int triblades, int ranks = 0,
                                     RoadrunnerParameters p = DefaultParameters(),
                                     Protocol protocol = Protocol::kReceiverInitiated) {
  auto cluster = Cluster::Create(p, {triblades, ranks, protocol});
  EXPECT_TRUE(cluster.ok()) << cluster.status();
  return *std::move(cluster);
}

void FillPattern(Cml& mpi, LsAddress at, std::uint32_t bytes, std::uint64_t seed) {
  for (std::uint32_t i = 0; i < bytes; ++i)
    *mpi.at(at + i) = static_cast<std::uint8_t>(Mix64(seed + i));
}
bool HasPattern(Cml& mpi, LsAddress at, std::uint32_t bytes, std::uint64_t seed) {
  for (std::uint32_t i = 0; i < bytes; ++i) {
    if (*mpi.at(at + i) != static_cast<std::uint8_t>(Mix64(seed + i))) return false;
  }
  return true;
}

struct Step {
  Rank from, to;
  std::uint32_t bytes;
  int tag;
  std::uint64_t seed;
};

// Every rank walks the list of all messages in order, so no order of waiting can close a cycle.
Task<> Walk(Cml& mpi, const std::vector<Step>* steps, int* wrong) {
  co_await mpi.Init();
  for (const Step& s : *steps) {
    if (s.from == mpi.rank()) {
      FillPattern(mpi, mpi.heap(), s.bytes, s.seed);
      co_await mpi.Send(mpi.heap(), s.bytes, s.to, s.tag);
    } else if (s.to == mpi.rank()) {
      std::fill_n(mpi.at(mpi.heap()), s.bytes + 16, std::uint8_t{0xee});
      const ReceiveStatus status = co_await mpi.Recv(mpi.heap(), s.bytes + 16, s.from, s.tag);
      *wrong += status.bytes != s.bytes || status.source != s.from || status.tag != s.tag ||
                !HasPattern(mpi, mpi.heap(), s.bytes, s.seed) ||
                *mpi.at(mpi.heap() + s.bytes) != 0xee;
    }
  }
  co_await mpi.Finalize();
}

std::vector<Step> RandomSteps(int count, int ranks, std::uint64_t seed,
                              std::map<Distance, int>* distances) {
  RandomStream random(seed, "cml");
  constexpr std::uint32_t kSizes[] = {1, 8, 100, 128, 300, 2000, 20000, 70000, 140000};
  std::vector<Step> steps;
  while (static_cast<int>(steps.size()) < count) {
    const auto from = static_cast<Rank>(random.Below(static_cast<std::uint32_t>(ranks)));
    // Half of them near, or chip and blade would hardly come up.
    const std::uint32_t near = random.Below(2);
    const auto to =
        static_cast<Rank>(near ? static_cast<std::uint32_t>(from) / 16 * 16 + random.Below(16)
                               : random.Below(static_cast<std::uint32_t>(ranks)));
    if (from == to) continue;
    steps.push_back({from, to, random.Below(kSizes[random.Below(9)]),
                     static_cast<int>(random.Below(16)), random.Next()});
    ++(*distances)[DistanceOf(from, to)];
  }
  return steps;
}

TEST(Cml, RandomMessagesOverAllFourDistancesArriveWhole) {
  PERCS_TRACE_SEED();
  for (const int cells : {2, 1}) {
    RoadrunnerParameters p = DefaultParameters();
    p.cml.mem_domain_cells = cells;
    std::map<Distance, int> distances;
    const std::vector<Step> steps = RandomSteps(300, 64, test::Seed() + cells, &distances);
    int wrong = 0;
    auto cluster = MakeCluster(2, 0, p);
    ASSERT_TRUE(
        cluster->LaunchAll(FullImage(kHeap), [&](Cml& mpi) { return Walk(mpi, &steps, &wrong); })
            .ok());
    const ClusterResult result = cluster->Run();
    EXPECT_TRUE(result.status.ok()) << result.status;
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(distances.size(), 4u);
    EXPECT_EQ(result.cml.near_sends + result.cml.far_sends, steps.size());
    EXPECT_GT(result.cml.copied_by_ppe, 0u);
    EXPECT_GT(result.cml.got_by_spe, 0u);
  }
}

TEST(Cml, SameSeedGivesTheSameDigestAndAnotherTimingAnother) {
  const auto digest = [](Time handle) {
    RoadrunnerParameters p = DefaultParameters();
    p.cml.ppe_handle = handle;
    std::map<Distance, int> distances;
    const std::vector<Step> steps = RandomSteps(60, 64, 5, &distances);
    int wrong = 0;
    auto cluster = MakeCluster(2, 0, p);
    EXPECT_TRUE(
        cluster->LaunchAll(FullImage(kHeap), [&](Cml& mpi) { return Walk(mpi, &steps, &wrong); })
            .ok());
    return cluster->Run().digest;
  };
  EXPECT_EQ(digest(500'000), digest(500'000));
  EXPECT_FALSE(digest(500'000) == digest(600'000));
}

// All 8 SPEs of a Cell send off the blade at once; their PPE has two slots each way.
TEST(Cml, SendersStallWhenSlotsRunOutAndEverythingStillArrives) {
  RoadrunnerParameters p = DefaultParameters();
  p.cml.send_slots = p.cml.receive_slots = 2;
  auto cluster = MakeCluster(2, 0, p);
  int wrong = 0;
  const auto program = [&wrong](Cml& mpi) -> Task<> {
    co_await mpi.Init();
    const Rank me = mpi.rank();
    for (int round = 0; round < 3; ++round) {
      if (me < 8) {
        FillPattern(mpi, mpi.heap(), 4096, static_cast<std::uint64_t>(me + round));
        co_await mpi.Send(mpi.heap(), 4096, me + 32, round);
      } else if (me >= 32 && me < 40) {
        co_await mpi.Recv(mpi.heap(), 4096, me - 32, round);
        wrong += !HasPattern(mpi, mpi.heap(), 4096, static_cast<std::uint64_t>(me - 32 + round));
      }
    }
    co_await mpi.Finalize();
  };
  ASSERT_TRUE(cluster->LaunchAll(FullImage(kHeap), program).ok());
  const ClusterResult result = cluster->Run();
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(result.cml.slot_stalls, 8u);
}

TEST(Cml, ALateReceiverHoldsItsSenderBackAtEveryDistance) {
  for (const Rank to : {1, 8, 16, 32}) {
    auto cluster = MakeCluster(2);
    Time sent = 0;
    const auto sender = [&sent, to](Cml& mpi) -> Task<> {
      co_await mpi.Init();
      FillPattern(mpi, mpi.heap(), 500, 7);
      co_await mpi.Send(mpi.heap(), 500, to, 2);
      sent = mpi.spe().time();
      co_await mpi.Finalize();
    };
    bool right = false;
    const auto receiver = [&right](Cml& mpi) -> Task<> {
      co_await mpi.Init();
      co_await mpi.Recv(mpi.heap(), 500, 0, 2);
      right = HasPattern(mpi, mpi.heap(), 500, 7);
      co_await mpi.Finalize();
    };
    ASSERT_TRUE(cluster->Launch({0}, FullImage(kHeap), sender).ok());
    ASSERT_TRUE(cluster->Launch({to}, FullImage(kHeap), receiver, {300 * kMicrosecond}).ok());
    const ClusterResult result = cluster->Run();
    EXPECT_TRUE(result.status.ok()) << result.status;
    EXPECT_TRUE(right);
    EXPECT_GT(sent, 300 * kMicrosecond);
  }
}

// Two senders, one receiver that asks for the second one first: by source, then by tag.
TEST(Cml, ReceivesSelectBySourceAndTag) {
  for (const Rank base : {1, 16, 32}) {
    auto cluster = MakeCluster(2);
    std::vector<int> got;
    const auto program = [&got, base](Cml& mpi) -> Task<> {
      co_await mpi.Init();
      if (mpi.rank() == 0) {
        for (const auto& [source, tag] :
             {std::pair{base + 1, 5}, std::pair{base, 3}, std::pair{base + 1, 4}}) {
          co_await mpi.Recv(mpi.heap(), 16, source, tag);
          got.push_back(*mpi.at(mpi.heap()));
        }
      } else if (mpi.rank() == base) {
        *mpi.at(mpi.heap()) = 33;
        co_await mpi.Send(mpi.heap(), 16, 0, 3);
      } else if (mpi.rank() == base + 1) {
        *mpi.at(mpi.heap()) = 55;
        co_await mpi.Send(mpi.heap(), 16, 0, 5);
        *mpi.at(mpi.heap()) = 44;
        co_await mpi.Send(mpi.heap(), 16, 0, 4);
      }
      co_await mpi.Finalize();
    };
    ASSERT_TRUE(cluster->LaunchAll(FullImage(kHeap), program).ok());
    const ClusterResult result = cluster->Run();
    EXPECT_TRUE(result.status.ok()) << result.status;
    EXPECT_EQ(got, (std::vector<int>{55, 33, 44}));
  }
}

// From the instant at which both sides call until the receiver has the data.
Time MessageTime(Protocol protocol, Rank to, Time wire, std::uint32_t bytes = 0) {
  RoadrunnerParameters p = DefaultParameters();
  p.blade.link.latency = wire;
  auto cluster = MakeCluster(1, 0, p, protocol);
  Time over = 0;
  const auto program = [&over, to, bytes](Cml& mpi) -> Task<> {
    co_await mpi.Init();
    if (mpi.rank() == 0) co_await mpi.Send(mpi.heap(), bytes, to, 0);
    if (mpi.rank() == to) {
      co_await mpi.Recv(mpi.heap(), 16, 0, 0);
      over = mpi.spe().time();
    }
    co_await mpi.Finalize();
  };
  EXPECT_TRUE(cluster->Launch({0, to}, FullImage(kHeap), program).ok());
  EXPECT_TRUE(cluster->Run().status.ok());
  return over;
}

TEST(Cml, ReceiverInitiatedMessagesTakeTwoNetworkLatenciesAndSenderInitiatedOnesThree) {
  // A longer wire between the chips adds itself once per latency. Data are one more: the flag is
  // fenced, and the MFC begins it when they are there.
  const Time longer = 10 * kMicrosecond, wire = 225'100;
  const auto latencies = [&](Protocol protocol, std::uint32_t bytes) {
    const Time more =
        MessageTime(protocol, 8, wire + longer, bytes) - MessageTime(protocol, 8, wire, bytes);
    return static_cast<double>(more) / static_cast<double>(longer);
  };
  EXPECT_EQ(latencies(Protocol::kReceiverInitiated, 0), 2);
  EXPECT_EQ(latencies(Protocol::kSenderInitiated, 0), 3);
  EXPECT_EQ(latencies(Protocol::kReceiverInitiated, 16), 3);
  EXPECT_EQ(latencies(Protocol::kSenderInitiated, 16), 4);
  EXPECT_LT(MessageTime(Protocol::kReceiverInitiated, 1, wire),
            MessageTime(Protocol::kSenderInitiated, 1, wire));
}

TEST(Cml, SenderInitiatedMessagesArriveWholeToo) {
  PERCS_TRACE_SEED();
  std::map<Distance, int> distances;
  const std::vector<Step> steps = RandomSteps(150, 32, test::Seed() + 9, &distances);
  int wrong = 0;
  auto cluster = MakeCluster(1, 0, DefaultParameters(), Protocol::kSenderInitiated);
  ASSERT_TRUE(
      cluster->LaunchAll(FullImage(kHeap), [&](Cml& mpi) { return Walk(mpi, &steps, &wrong); })
          .ok());
  EXPECT_TRUE(cluster->Run().status.ok());
  EXPECT_EQ(wrong, 0);
}

TEST(Cml, NearMessagesPassNoPpe) {
  auto cluster = MakeCluster(1);
  std::map<Distance, int> distances;
  std::vector<Step> steps = RandomSteps(100, 16, 3, &distances);
  int wrong = 0;
  ASSERT_TRUE(
      cluster->LaunchAll(FullImage(kHeap), [&](Cml& mpi) { return Walk(mpi, &steps, &wrong); })
          .ok());
  const ClusterResult result = cluster->Run();
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.cml.far_sends, 0u);
  EXPECT_EQ(result.host.dacs, 0u);
}

TEST(Cml, AMessageOverADeadCableFailsItsSenderWithTheReason) {
  auto cluster = MakeCluster(2);
  IbNetwork& network = cluster->host().network();
  ASSERT_TRUE(network.Inject({0, false, *network.tree().ParseCable("triblade1"), false}).ok());
  const auto program = [](Cml& mpi) -> Task<> {
    co_await mpi.Init();
    if (mpi.rank() == 0) co_await mpi.Send(mpi.heap(), 64, 32, 0);
    if (mpi.rank() == 32) co_await mpi.Recv(mpi.heap(), 64, 0, 0);
    co_await mpi.Finalize();
  };
  ASSERT_TRUE(cluster->Launch({0, 32}, FullImage(kHeap), program).ok());
  const ClusterResult result = cluster->Run();
  EXPECT_EQ(result.status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(result.status.message().find("the network has no route to triblade 1"),
            std::string::npos)
      << result.status;
}

TEST(Cml, ACrossbarFailsAndMessagesGoAroundIt) {
  auto cluster = MakeCluster(20);
  IbNetwork& network = cluster->host().network();
  const auto path = network.tree().Route(0, 19);
  ASSERT_TRUE(path.ok());
  const int spine = path->links[2] / kCrossbarPorts;
  ASSERT_TRUE(network.Inject({50 * kMicrosecond, true, spine, false}).ok());
  int wrong = 0;
  std::vector<Step> steps;
  for (int i = 0; i < 20; ++i)
    steps.push_back({0, 19 * 32, 2000, 1, static_cast<std::uint64_t>(i)});
  ASSERT_TRUE(cluster
                  ->Launch({0, 19 * 32}, FullImage(kHeap),
                           [&](Cml& mpi) { return Walk(mpi, &steps, &wrong); })
                  .ok());
  const ClusterResult result = cluster->Run();
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(result.network.retries, 0u);
  EXPECT_GT(result.time, DefaultParameters().infiniband.sweep);
}

// --- Errors --------------------------------------------------------------------------------------

absl::Status StatusOf(const RankProgram& program, SpeProgramImage image = FullImage(kHeap)) {
  auto cluster = MakeCluster(2);
  if (absl::Status s = cluster->Launch({0, 1, 40}, image, program); !s.ok()) return s;
  return cluster->Run().status;
}

struct BadCall {
  const char* text;
  RankProgram program;
};

TEST(Cml, BadCallsNameTheirRule) {
  const BadCall calls[] = {
      {"MPI_ANY_SOURCE",
       [](Cml& m) -> Task<> {
         co_await m.Init();
         co_await m.Recv(m.heap(), 8, kAnySource, 0);
       }},
      {"tag 16 is out of range; this CML was built with tags 0 to 15",
       [](Cml& m) -> Task<> {
         co_await m.Init();
         co_await m.Send(m.heap(), 8, 1, 16);
       }},
      {"tag -1",
       [](Cml& m) -> Task<> {
         co_await m.Init();
         co_await m.Recv(m.heap(), 8, 1, -1);
       }},
      {"rank 64; the communicator has ranks 0 to 63",
       [](Cml& m) -> Task<> {
         co_await m.Init();
         co_await m.Send(m.heap(), 8, 64, 0);
       }},
      {"sends to itself",
       [](Cml& m) -> Task<> {
         co_await m.Init();
         co_await m.Send(m.heap(), 8, m.rank(), 0);
       }},
      {"before MPI_Init", [](Cml& m) -> Task<> { co_await m.Barrier(); }},
      {"without MPI_Finalize", [](Cml& m) -> Task<> { co_await m.Init(); }},
      {"after MPI_Finalize",
       [](Cml& m) -> Task<> {
         co_await m.Init();
         co_await m.Finalize();
         co_await m.Barrier();
       }},
      {"must be a multiple of 16",
       [](Cml& m) -> Task<> {
         co_await m.Init();
         co_await m.Send(m.heap() + 4, 8, 1, 0);
       }},
      {"CML's control block",
       [](Cml& m) -> Task<> {
         co_await m.Init();
         co_await m.Send(kControl - 16, 32, 1, 0);
       }},
      {"MPI_Abort(7)",
       [](Cml& m) -> Task<> {
         co_await m.Init();
         co_await m.Abort(7);
       }},
      {"does not fit into 16 bytes",
       [](Cml& m) -> Task<> {
         co_await m.Init();
         if (m.rank() == 0) co_await m.Send(m.heap(), 32, 1, 0);
         if (m.rank() == 1) co_await m.Recv(m.heap(), 16, 0, 0);
         co_await m.Finalize();
       }},
      {"deadlock: rank 0 waits for MPI_Send to rank 1, tag 0: its receive",
       [](Cml& m) -> Task<> {
         co_await m.Init();
         if (m.rank() == 0) co_await m.Send(m.heap(), 32, 1, 0);
         co_await m.Finalize();
       }},
  };
  for (const BadCall& call : calls) {
    const absl::Status status = StatusOf(call.program);
    EXPECT_NE(std::string(status.message()).find(call.text), std::string::npos) << call.text << "\n"
                                                                                << status;
  }
}

TEST(Cml, AnImageIsHeldToTheLocalStoreAndToTheFourteenFunctions) {
  const RankProgram nothing = [](Cml& m) -> Task<> {
    co_await m.Init();
    co_await m.Finalize();
  };
  const absl::Status overrun = StatusOf(nothing, FullImage(240 * 1024));
  EXPECT_EQ(overrun.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(overrun.message().find("local store overrun"), std::string::npos) << overrun;
  SpeProgramImage image = FullImage(1024);
  image.functions.push_back("MPI_Isend");
  const absl::Status unsupported = StatusOf(nothing, image);
  EXPECT_EQ(unsupported.code(), absl::StatusCode::kUnimplemented);
  EXPECT_NE(unsupported.message().find("unsupported function MPI_Isend"), std::string::npos);
  image.functions = {"MPI_Init", "MPI_Finalize"};
  const absl::Status unlinked = StatusOf(
      [](Cml& m) -> Task<> {
        co_await m.Init();
        co_await m.Barrier();
      },
      image);
  EXPECT_NE(unlinked.message().find("MPI_Barrier is not linked"), std::string::npos) << unlinked;
}

TEST(Cml, InitFinaliseSendAndReceiveTakeFiveKilobytes) {
  SpeProgramImage image;
  image.functions = {"MPI_Init", "MPI_Finalize", "MPI_Send", "MPI_Recv"};
  const auto linked = Link(image);
  ASSERT_TRUE(linked.ok());
  EXPECT_EQ(linked->cml_bytes - kControlBytes, 5u * 1024);
  EXPECT_FALSE(Cluster::Create(DefaultParameters(), {1, 33}).ok());
}

}  // namespace
}  // namespace percs::roadrunner
