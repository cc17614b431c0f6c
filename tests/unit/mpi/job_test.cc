// Method: what ranks hear is compared with what was said, and runs with each other.
#include "client/mpi/job.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "client/mpi/launch.h"
#include "tests/unit/mpi/ranks.h"

namespace percs::mpi {
namespace {

// The fabric may fill a ring while its rank takes records out of it, and never sees it full.
TEST(MpiChannel, AWriterWithoutRoomIsWokenByWhatMakesRoom) {
  const auto ring = std::make_unique<Ring>();
  const std::vector<std::uint8_t> bytes(kPayloadMax);
  Record record, front;
  record.payload = kPayloadMax;
  bool valid = true;
  const auto fill = [&] {
    std::uint64_t records = 0;
    while (ring->Write(record, bytes.data())) ++records;
    return records;
  };
  const auto take = [&] {
    const bool some = ring->Front(&front, &valid);
    if (some) ring->Pop(front);
    return some;
  };
  const std::uint64_t fit = kRingBytes / Ring::Padded(kPayloadMax);
  EXPECT_EQ(fit, fill());
  EXPECT_TRUE(take());
  EXPECT_TRUE(ring->MadeRoom());
  EXPECT_FALSE(ring->MadeRoom());  // it has been woken
  EXPECT_EQ(1u, fill());
  while (take()) {
  }
  EXPECT_TRUE(ring->MadeRoom());
  EXPECT_TRUE(ring->Write(record, bytes.data()));
  EXPECT_TRUE(take());
  EXPECT_FALSE(ring->MadeRoom());  // nobody waits
  EXPECT_TRUE(valid);
}

// Inner switches of a fat tree have no windows.
TEST(MpiLaunch, RanksAreOnTheLeavesOfAFatTree) {
  TopologySpec spec;
  ASSERT_TRUE(spec.UseGraph({.kind = GraphSpec::Kind::kFatTree, .radix = 8}).ok());
  const auto topology = Topology::Create(spec);
  ASSERT_TRUE(topology.ok()) << topology.status();
  ASSERT_EQ(topology->leaves(), 4u);
  const auto round_robin = PlaceRanks("hub", 5, *topology, 4, 0);
  ASSERT_TRUE(round_robin.ok()) << round_robin.status();
  EXPECT_EQ(round_robin->at(3).hub, 3u);
  EXPECT_EQ(round_robin->at(4).hub, 0u);
  EXPECT_TRUE(PlaceRanks("node:2", 8, *topology, 4, 0).ok());
  EXPECT_FALSE(PlaceRanks("node:2", 9, *topology, 4, 0).ok());
}

TEST(MpiJob, MessagesOfEverySizeComeWholeInOrderAndAtTheSameTimes) {
  const std::vector<std::size_t> sizes = {0, 1, 95, 96, 2016, 2017, 32768, 32769, 400000};
  const Part sends = [&](Program& rank) {
    for (const std::size_t size : sizes) rank.Send(1, Pattern(size, 3));
    for (std::size_t i = 0; i < sizes.size(); ++i) EXPECT_EQ(EndCode::kOk, rank.Next().code);
  };
  const Part receives = [&](Program& rank) {
    for (const std::size_t size : sizes) {
      std::vector<std::uint8_t> room(500000);
      rank.Post(&room);
      const Ended ended = rank.Next();
      EXPECT_EQ(size, ended.length);
      room.resize(size);
      EXPECT_EQ(Pattern(size, 3), room) << size;
    }
  };
  const JobResult first = RunProgram({sends, receives}), second = RunProgram({sends, receives});
  EXPECT_EQ("", first.failure);
  EXPECT_EQ(0u, first.late_calls);
  EXPECT_TRUE(first.run.violations.empty());
  EXPECT_EQ(first.digest, second.digest);
  EXPECT_EQ(first.times, second.times);
  EXPECT_EQ(2u, first.ranks[0].traffic.rendezvous);
}

TEST(MpiJob, WhatIsTooLongIsTruncatedAndOtherTagsWait) {
  RunProgram({[](Program& rank) {
                rank.Send(1, Pattern(50, 1), kTag + 1);
                rank.Send(1, Pattern(100, 2));
                rank.Next(), rank.Next();
              },
              [](Program& rank) {
                std::vector<std::uint8_t> room(10);
                rank.Post(&room);
                const Ended ended = rank.Next();
                EXPECT_EQ(EndCode::kTruncated, ended.code);
                EXPECT_EQ(100u, ended.length);
                EXPECT_EQ(Pattern(10, 2), room);
              }});
}

TEST(MpiJob, ALongMessageForWhichThereIsNoRoomEndsOnBothSides) {
  RunProgram({[](Program& rank) {
                rank.Send(1, Pattern(100'000, 3));
                EXPECT_EQ(EndCode::kOk, rank.Next().code);
              },
              [](Program& rank) {
                std::vector<std::uint8_t> none;
                rank.Post(&none);
                const Ended ended = rank.Next();
                EXPECT_EQ(EndCode::kTruncated, ended.code);
                EXPECT_EQ(100'000u, ended.length);
              }});
}

// Of `sizes`, to a rank that sends nothing back.
JobResult SendOneWay(const std::vector<std::size_t>& sizes) {
  return RunProgram({[&](Program& rank) {
                       for (const std::size_t bytes : sizes) rank.Send(1, Pattern(bytes, 1));
                       for (std::size_t i = 0; i < sizes.size(); ++i) rank.Next();
                     },
                     [&](Program& rank) {
                       for (const std::size_t bytes : sizes) {
                         std::vector<std::uint8_t> room(bytes);
                         rank.Post(&room);
                         EXPECT_EQ(EndCode::kOk, rank.Next().code);
                       }
                     }});
}

TEST(MpiJob, MessagesAreCountedBySize) {
  const JobResult result = SendOneWay({0, 1, 2, 3, 4, 5, 8, 9, 128, 129});
  const auto& by_size = result.ranks[0].traffic.by_size;
  EXPECT_EQ(1u, by_size[0]) << "without content";
  EXPECT_EQ(1u, by_size[1]) << "up to 1 B";
  EXPECT_EQ(1u, by_size[2]) << "up to 2 B";
  EXPECT_EQ(2u, by_size[3]) << "up to 4 B";
  EXPECT_EQ(2u, by_size[4]) << "up to 8 B";
  EXPECT_EQ(1u, by_size[5]) << "up to 16 B";
  EXPECT_EQ(1u, by_size[8]) << "up to 128 B";
  EXPECT_EQ(1u, by_size[9]) << "up to 256 B";
}

// Packets that come within `ack_delay` have one acknowledgement, and 16 have one at once.
TEST(MpiJob, OneAcknowledgementIsForSeveralPackets) {
  const auto acknowledgements = [](std::size_t messages) {
    return SendOneWay(std::vector<std::size_t>(messages, 8)).ranks[1].traffic.acknowledgements;
  };
  EXPECT_EQ(1u, acknowledgements(1));
  EXPECT_EQ(1u, acknowledgements(3));
}

TEST(MpiJob, APeekFindsWhatHasComeAndAClaimTakesIt) {
  RunProgram({[](Program& rank) {
                rank.Send(1, Pattern(64, 5));
                rank.Next();
              },
              [](Program& rank) {
                std::vector<std::uint8_t> none, room(64);
                int context = 0, peeks = 0;
                Ended found;
                do {
                  rank.Post(&none, kPeek | kClaim, &context);
                  found = rank.Next();
                  ++peeks;
                } while (found.code == EndCode::kNoMessage);
                EXPECT_GT(peeks, 1);
                EXPECT_EQ(64u, found.length);
                rank.Post(&room, kClaim, &context);
                EXPECT_EQ(EndCode::kOk, rank.Next().code);
                EXPECT_EQ(Pattern(64, 5), room);
              }});
}

TEST(MpiJob, AReceiveWithoutAMessageIsCancelled) {
  RunProgram({[](Program& rank) {
    std::vector<std::uint8_t> room(8);
    int context = 0;
    rank.Post(&room, 0, &context);
    rank.Cancel(&context);
    const Ended ended = rank.Next();
    EXPECT_EQ(EndCode::kCancelled, ended.code);
    EXPECT_EQ(&context, ended.context);
  }});
}

TEST(MpiJob, ARankThatCallsThoughItSaidItWaitsIsCountedAndStillRight) {
  const JobResult result = RunProgram({[](Program& rank) {
                                         std::vector<std::uint8_t> room(8);
                                         int context = 0;
                                         rank.Post(&room, 0, &context);
                                         rank.WaitInVain();
                                         rank.Send(1, Pattern(16, 1));
                                         EXPECT_EQ(EndCode::kOk, rank.Next().code);
                                       },
                                       [](Program& rank) {
                                         std::vector<std::uint8_t> room(16);
                                         rank.Post(&room);
                                         EXPECT_EQ(EndCode::kOk, rank.Next().code);
                                         EXPECT_EQ(Pattern(16, 1), room);
                                       }});
  EXPECT_EQ("", result.failure);
  EXPECT_EQ(1u, result.late_calls);
}

TEST(MpiJob, PacketsThatALinkLosesAreSentAgain) {
  FaultSpec cut = Fault(FaultKind::kFlap);
  cut.select.link = LinkEnd{0, 0};
  cut.period = 4 * kMicrosecond;
  cut.repeats = 50;
  const auto job = StartJob(2);
  Inject(*job, cut);
  const JobResult result = RunProgram(*job, {[](Program& rank) {
                                               for (int i = 0; i < 200; ++i)
                                                 rank.Send(1, Pattern(900, 1));
                                               for (int i = 0; i < 200; ++i) rank.Next();
                                             },
                                             [](Program& rank) {
                                               for (int i = 0; i < 200; ++i) {
                                                 std::vector<std::uint8_t> room(900);
                                                 rank.Post(&room);
                                                 EXPECT_EQ(EndCode::kOk, rank.Next().code);
                                                 EXPECT_EQ(Pattern(900, 1), room);
                                               }
                                             }});
  EXPECT_EQ("", result.failure);
  EXPECT_GT(result.ranks[0].traffic.resent, 0u);
}

TEST(MpiJob, ALostHubIsNamed) {
  FaultSpec lost = Fault(FaultKind::kHubDown);
  lost.select.in = {1};
  const auto job = StartJob(2);
  Inject(*job, lost);
  const Part waits = [](Program& rank) {
    std::vector<std::uint8_t> room(8);
    rank.Post(&room);
    EXPECT_EQ(EndCode::kUnreachable, rank.Next().code);
  };
  const JobResult result =
      RunProgram(*job, {[&](Program& rank) {
                          rank.Send(1, Pattern(8, 1));
                          EXPECT_EQ(EndCode::kOk, rank.Next().code);  // it is eager
                          waits(rank);
                        },
                        waits});
  EXPECT_NE(std::string::npos, result.failure.find("(window 0 of sn0-d0-h1) gives no answer"))
      << result.failure;
  EXPECT_FALSE(job->Manage([](Fabric&, Time) { return absl::OkStatus(); }).ok());
}

TEST(MpiJob, RanksOfOneHubUseItsMemory) {
  const auto job = StartJob(2, /*per_hub=*/2);
  const JobResult result = RunProgram(*job, {[](Program& rank) {
                                               std::vector<std::uint8_t> room(100000);
                                               rank.Post(&room);
                                               EXPECT_EQ(EndCode::kOk, rank.Next().code);
                                               EXPECT_EQ(Pattern(100000, 9), room);
                                             },
                                             [](Program& rank) {
                                               rank.Send(0, Pattern(100000, 9));
                                               rank.Next();
                                             }});
  EXPECT_EQ(1u, result.ranks[1].traffic.local);
  EXPECT_TRUE(result.links.empty());
}

TEST(MpiJob, RanksOnSeveralProcessesHaveTheTimesOfRanksOnOne) {
  const std::vector<Part> parts = EveryPair(2);
  const auto job = StartJob(8, 2);
  const JobResult one = RunProgram(*job, parts);
  EXPECT_EQ("", one.failure);
  for (const std::uint32_t processes : {2, 4}) {
    Processes several(OnFourHubs(2), processes);
    auto threads = StartRanks(parts, [&](std::uint32_t rank) { return several.SocketOf(rank); });
    const JobResult result = several.Run(0);
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(one.times, result.times) << processes;
    EXPECT_EQ(one.digest, result.digest) << processes;
    EXPECT_EQ(one.virtual_time, result.virtual_time) << processes;
  }
}

TEST(MpiJob, ProgramsThatBeginLaterHaveTheSameTimes) {
  const std::vector<Part> parts = EveryPair(1);
  Digest times;
  for (const Time start : {Time{0}, 5 * kMillisecond + 77}) {
    Processes two(OnFourHubs(1), 2);
    auto threads = StartRanks(parts, [&](std::uint32_t rank) { return two.SocketOf(rank); });
    const JobResult result = two.Run(start);
    for (std::thread& thread : threads) thread.join();
    if (start == 0) times = result.times;
    EXPECT_EQ(times, result.times) << start;
  }
}

TEST(MpiJob, ARankOfAnotherProcessIsRefusedWithItsHub) {
  Processes two(OnFourHubs(1), 2);
  setenv(kSocketVariable, two.job(0).socket().c_str(), 1);
  setenv("OMPI_COMM_WORLD_RANK", "3", 1);
  std::string why;
  EXPECT_EQ(nullptr, RankLink::Connect(&why));
  EXPECT_NE(std::string::npos, why.find("rank 3 belongs to sn0-d0-h3")) << why;
}

}  // namespace
}  // namespace percs::mpi
