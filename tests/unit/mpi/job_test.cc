// Method: ranks are threads of this process, each with the provider's link to a job on a drawer of
// four hubs; what they hear is compared with what was said, and runs with each other.
#include "client/mpi/job.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/ofi/rank.h"

namespace percs::mpi {
namespace {

constexpr std::uint64_t kTag = 7;

std::vector<std::uint8_t> Pattern(std::size_t bytes, unsigned seed) {
  std::vector<std::uint8_t> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::uint8_t>(i * 31 + seed);
  return data;
}

// A rank of the program, on hub `number`.
class Program {
 public:
  explicit Program(std::unique_ptr<RankLink> link) : link_(std::move(link)) {}

  void Send(std::uint32_t to, std::vector<std::uint8_t> data, std::uint64_t tag = kTag) {
    const iovec part{data.data(), data.size()};
    link_->Send(PeerOf(to, 0), tag, 0, &part, 1, true, this);
  }
  void Post(std::vector<std::uint8_t>* room, std::uint32_t flags = 0, void* context = nullptr) {
    const iovec part{room->data(), room->size()};
    link_->Receive(kAnyPeer, kTag, 0, &part, 1, flags, context);
  }
  // The next thing that ends.
  Ended Next() {
    while (link_->Poll() == RankLink::Polled::kNothing) {
    }
    if (link_->ended().empty()) return {nullptr, EndCode::kUnreachable};  // the job has failed
    const Ended ended = link_->ended().front();
    link_->ended().pop_front();
    link_->Took();
    return ended;
  }
  void Cancel(void* context) { link_->Cancel(context); }
  // Until the rank has said that it waits, and its patience is over.
  void WaitInVain() {
    for (int i = 0; i < 24; ++i) EXPECT_EQ(RankLink::Polled::kNothing, link_->Poll());
  }

 private:
  std::unique_ptr<RankLink> link_;
};

using Part = std::function<void(Program& rank)>;

std::unique_ptr<Job> StartJob(std::size_t ranks, std::uint32_t per_hub = 1) {
  JobOptions options;
  options.machine.topology.supernodes = 1;
  options.machine.topology.drawers = 1;
  options.machine.topology.hubs = 4;
  for (std::uint32_t r = 0; r < ranks; ++r)
    options.places.push_back({r / per_hub, static_cast<WindowId>(r % per_hub)});
  auto job = Job::Start(std::move(options));
  EXPECT_TRUE(job.ok()) << job.status();
  return *std::move(job);
}

JobResult RunProgram(Job& job, const std::vector<Part>& parts) {
  std::vector<std::thread> threads;
  setenv(kSocketVariable, job.socket().c_str(), 1);
  std::vector<std::unique_ptr<RankLink>> links;
  for (std::size_t r = 0; r < parts.size(); ++r) {
    setenv("OMPI_COMM_WORLD_RANK", std::to_string(r).c_str(), 1);
    std::string why;
    links.push_back(RankLink::Connect(&why));
    EXPECT_NE(nullptr, links.back()) << why;
  }
  for (std::size_t r = 0; r < parts.size(); ++r) {
    threads.emplace_back([link = std::move(links[r]), &part = parts[r]]() mutable {
      Program rank(std::move(link));
      part(rank);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return job.Finish();
}

JobResult RunProgram(const std::vector<Part>& parts) {
  const auto job = StartJob(parts.size());
  return RunProgram(*job, parts);
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

FaultSpec Fault(FaultKind kind) {
  FaultSpec fault;
  fault.id = "fault";
  fault.kind = kind;
  return fault;
}

void Inject(Job& job, const FaultSpec& fault) {
  EXPECT_TRUE(job.Manage([&](Fabric& fabric, Time now) {
                   return fabric.faults()->Create(fault, now).status();
                 })
                  .ok());
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

}  // namespace
}  // namespace percs::mpi
