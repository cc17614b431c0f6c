// Method: ranks are threads of this process, each with the provider's link to a job on a drawer of
// four hubs; what they hear is compared with what was said, and runs with each other.
#include "client/mpi/job.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/mpi/job_journal.h"
#include "client/ofi/rank.h"
#include "emulator/routing/planner.h"

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
  // To and from ranks of EveryPair.
  void SendTo(std::uint64_t peer, std::vector<std::uint8_t> data, std::uint64_t tag) {
    const iovec part{data.data(), data.size()};
    link_->Send(peer, tag, 0, &part, 1, true, this);
  }
  void PostFor(std::uint64_t tag, std::vector<std::uint8_t>* room) {
    const iovec part{room->data(), room->size()};
    link_->Receive(kAnyPeer, tag, 0, &part, 1, 0, room);
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
  void Leave(CollectiveRequest* request) { EXPECT_TRUE(link_->Begin(request)); }
  // On CAUs; what Open MPI's component does.
  bool Carry(CollectiveRequest* request) {
    EXPECT_TRUE(link_->Begin(request));
    while (request->done == 0 && link_->Poll() != RankLink::Polled::kBroken) {
    }
    return request->done > 0;
  }
  std::uint64_t Join(std::vector<std::uint32_t> ranks, std::uint64_t communicator = 0) {
    CollectiveRequest request;
    request.record = RecordKind::kJoin;
    request.group = communicator;
    request.operand = ranks.data();
    request.operand_bytes = request.bytes = ranks.size() * sizeof(ranks[0]);
    return Carry(&request) ? request.answer : kNoGroup;
  }
  // Sums of `values`; false if the run failed.
  bool Sum(std::uint64_t group, std::uint32_t root, std::vector<std::int64_t>* values,
           CollectiveKind kind = CollectiveKind::kAllreduce, bool hears = true) {
    CollectiveRequest request;
    request.kind = kind;
    request.group = group;
    request.root = root;
    request.reduction = ReductionCode(static_cast<std::uint32_t>(ReduceOp::kSum),
                                      static_cast<std::uint32_t>(OperandType::kInt64));
    request.operand = values->data();
    request.operand_bytes = request.bytes = values->size() * sizeof(std::int64_t);
    if (hears) request.result = values->data();
    return Carry(&request);
  }
  bool Broadcast(std::uint64_t group, std::uint32_t root, bool sends,
                 std::vector<std::uint8_t>* data) {
    CollectiveRequest request;
    request.kind = CollectiveKind::kBroadcast;
    request.group = group;
    request.root = root;
    request.bytes = data->size();
    if (sends) {
      request.operand = data->data();
      request.operand_bytes = data->size();
    } else {
      request.result = data->data();
    }
    return Carry(&request);
  }
  // Until the rank has said that it waits, and its patience is over.
  void WaitInVain() {
    for (int i = 0; i < 24; ++i) EXPECT_EQ(RankLink::Polled::kNothing, link_->Poll());
  }

 private:
  std::unique_ptr<RankLink> link_;
};

using Part = std::function<void(Program& rank)>;

std::unique_ptr<Job> StartJob(std::size_t ranks, std::uint32_t per_hub = 1,
                              JobOptions options = {}) {
  options.machine.topology.supernodes = 1;
  options.machine.topology.drawers = 1;
  options.machine.topology.hubs = 4;
  for (std::uint32_t r = 0; r < ranks; ++r)
    options.places.push_back({r / per_hub, static_cast<WindowId>(r % per_hub)});
  auto job = Job::Start(std::move(options));
  EXPECT_TRUE(job.ok()) << job.status();
  return *std::move(job);
}

// `socket_of`: of the job that has the rank.
std::vector<std::thread> StartRanks(const std::vector<Part>& parts,
                                    const std::function<std::string(std::uint32_t)>& socket_of) {
  std::vector<std::thread> threads;
  std::vector<std::unique_ptr<RankLink>> links;
  for (std::uint32_t r = 0; r < parts.size(); ++r) {
    setenv(kSocketVariable, socket_of(r).c_str(), 1);
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
  return threads;
}

JobResult RunProgram(Job& job, const std::vector<Part>& parts) {
  for (std::thread& thread : StartRanks(parts, [&](std::uint32_t) { return job.socket(); }))
    thread.join();
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

// --- Ranks on hubs of several processes ----------------------------------------------------------

// What daemons and their controller do, in one thread: a fabric for each process, and one for
// network management; windows as long as the shortest way between two hubs; a window ends when all
// ranks wait.
class Processes {
 public:
  Processes(const JobOptions& options, std::uint32_t processes) {
    const auto topology = Topology::Create(options.machine.topology);
    EXPECT_TRUE(topology.ok());
    Placement placement;
    placement.processes = static_cast<int>(processes) + 1;
    placement.manager_process = static_cast<int>(processes);
    for (NodeId node = 0; node < topology->nodes(); ++node)
      placement.process_of_node.push_back(
          static_cast<std::uint16_t>(node * processes / topology->nodes()));
    const TableSet tables = Planner(*topology).Plan(Failures());
    for (int p = 0; p < placement.processes; ++p) {
      placement.self = p;
      auto fabric = Fabric::Create(options.machine, placement);
      EXPECT_TRUE(fabric.ok()) << fabric.status();
      fabrics_.push_back(*std::move(fabric));
      for (const NodeId node : fabrics_.back()->local_nodes())
        fabrics_.back()->InstallTables(node, tables[node]);
      fabrics_.back()->Start();
      if (p == placement.manager_process) continue;
      auto job = Job::Join(options, *fabrics_.back());
      EXPECT_TRUE(job.ok()) << job.status();
      jobs_.push_back(*std::move(job));
    }
  }
  std::string SocketOf(std::uint32_t rank) const {
    for (const auto& job : jobs_) {
      if (job->here(rank)) return job->socket();
    }
    return "";
  }
  // Until all ranks are over, and nothing happens any more.
  JobResult Run(Time start) {
    while (Waits() || !AllOver(/*attached=*/true)) std::this_thread::yield();
    for (const auto& job : jobs_) job->StartAt(start);
    for (Time next = Next(); next < kNever; next = Next()) Window(next + fabrics_[0]->lookahead());
    EXPECT_TRUE(AllOver(/*attached=*/false));
    JobResult result;
    std::vector<NodeResult> nodes;
    result.ranks.resize(jobs_[0]->options().places.size());
    for (std::size_t p = 0; p < jobs_.size(); ++p) {
      for (const NodeId node : fabrics_[p]->local_nodes())
        nodes.push_back(fabrics_[p]->Result(node));
      const std::vector<RankSummary> ranks = jobs_[p]->Summaries();
      for (std::uint32_t r = 0; r < ranks.size(); ++r) {
        if (jobs_[p]->here(r)) result.ranks[r] = ranks[r];
      }
      EXPECT_EQ("", jobs_[p]->failure());
      EXPECT_EQ(0u, jobs_[p]->late_calls());
    }
    result.run =
        MergeResults(fabrics_[0]->scenario(), fabrics_[0]->topology(), std::move(nodes), {}, 0);
    result.Combine();
    return result;
  }
  Job& job(std::size_t process) { return *jobs_[process]; }

 private:
  // A rank has to say something first.
  bool Waits() {
    bool waits = false;
    for (const auto& job : jobs_) {
      job->Hear();
      waits = waits || job->standing().absent + job->standing().running > 0;
    }
    return waits;
  }
  bool AllOver(bool attached) {
    std::size_t over = 0;
    for (const auto& job : jobs_) {
      const JobStanding standing = job->standing();
      over += standing.over + (attached ? standing.waiting : 0);
      EXPECT_TRUE(attached || standing.idle);
    }
    return over == jobs_[0]->options().places.size();
  }
  Time Next() const {
    Time next = kNever;
    for (const auto& fabric : fabrics_) next = std::min(next, fabric->NextEventTime());
    for (const auto& job : jobs_) next = std::min(next, job->NextOfRanks());
    return next;
  }
  void Window(Time end) {
    for (std::size_t p = 0; p < jobs_.size(); ++p) {
      do {
        std::this_thread::yield();
        jobs_[p]->Hear();
        while (jobs_[p]->Advance(kNever, end, true)) jobs_[p]->Hear();
      } while (jobs_[p]->standing().running > 0);
    }
    for (const auto& fabric : fabrics_) fabric->RunWindow(end);
    for (const auto& from : fabrics_) {
      for (std::uint32_t to = 0; to < fabrics_.size(); ++to) {
        if (fabrics_[to] == from) continue;
        Outbox outbox = std::move(from->outbox(to));
        from->outbox(to).Clear();
        if (outbox.empty()) continue;
        EXPECT_TRUE(fabrics_[to]->Accept(std::move(outbox)).ok());
      }
    }
  }

  std::vector<std::unique_ptr<Job>> jobs_;  // outlive the fabrics
  std::vector<std::unique_ptr<Fabric>> fabrics_;
};

// Short and long messages between all ranks of a job on four hubs.
std::vector<Part> EveryPair(std::uint32_t per_hub) {
  std::vector<Part> parts;
  const std::uint32_t n = 4 * per_hub;
  for (std::uint32_t r = 0; r < n; ++r) {
    parts.push_back([r, n, per_hub](Program& rank) {
      for (const std::size_t size : {8, 2500, 70000}) {
        for (std::uint32_t step = 1; step < n; ++step) {
          std::vector<std::uint8_t> room(size);
          rank.PostFor(size + step, &room);
          const std::uint32_t to = (r + step) % n;
          rank.SendTo(PeerOf(to / per_hub, static_cast<std::uint16_t>(to % per_hub)),
                      Pattern(size, r), size + step);
          rank.Next(), rank.Next();
          EXPECT_EQ(Pattern(size, (r + n - step) % n), room);
        }
      }
    });
  }
  return parts;
}

JobOptions OnFourHubs(std::uint32_t per_hub) {
  JobOptions options;
  options.machine.topology.supernodes = 1;
  options.machine.topology.drawers = 1;
  options.machine.topology.hubs = 4;
  for (std::uint32_t r = 0; r < 4 * per_hub; ++r)
    options.places.push_back({r / per_hub, static_cast<WindowId>(r % per_hub)});
  return options;
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

// --- Collectives on CAUs -------------------------------------------------------------------------

JobOptions OnCaus() {
  JobOptions options;
  options.collective_bytes = options.transport.collective_bytes;
  return options;
}

// Rank r of n: sums of 1 to 100 operands at every root, broadcasts from every rank, a barrier.
Part EveryCollective(std::uint32_t r, std::uint32_t n) {
  return [r, n](Program& rank) {
    std::vector<std::uint32_t> all;
    for (std::uint32_t i = 0; i < n; ++i) all.push_back(i);
    const std::uint64_t group = rank.Join(all);
    ASSERT_NE(kNoGroup, group);
    for (std::uint32_t root = 0; root < n; ++root) {
      for (const std::size_t count : {1, 8, 9, 100}) {
        const auto mine = [&] {
          std::vector<std::int64_t> values(count);
          for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<std::int64_t>(i * n + r);
          return values;
        };
        std::vector<std::int64_t> sums(count), values = mine();
        for (std::size_t i = 0; i < count; ++i)
          sums[i] = static_cast<std::int64_t>(n * n * i + n * (n - 1) / 2);
        EXPECT_TRUE(rank.Sum(group, 0, &values));
        EXPECT_EQ(sums, values);
        values = mine();
        EXPECT_TRUE(rank.Sum(group, root, &values, CollectiveKind::kReduce, r == root));
        EXPECT_EQ(r == root ? sums : mine(), values);
        std::vector<std::uint8_t> data = Pattern(count * 7, r == root ? root : 255);
        EXPECT_TRUE(rank.Broadcast(group, root, r == root, &data));
        EXPECT_EQ(Pattern(count * 7, root), data);
      }
    }
    CollectiveRequest barrier;
    barrier.group = group;
    EXPECT_TRUE(rank.Carry(&barrier));
  };
}

JobResult RunCollectives(Job& job, std::uint32_t ranks) {
  std::vector<Part> parts;
  for (std::uint32_t r = 0; r < ranks; ++r) parts.push_back(EveryCollective(r, ranks));
  return RunProgram(job, parts);
}

TEST(MpiCollectives, AreRightOnEveryPlacementAndEveryRunHasOneDigest) {
  for (const std::uint32_t per_hub : {1, 2, 3, 8}) {
    SCOPED_TRACE(per_hub);
    const std::uint32_t ranks = per_hub == 1 ? 4 : 6;
    Digest digests[2];
    for (Digest& digest : digests) {
      const auto job = StartJob(ranks, per_hub, OnCaus());
      const JobResult result = RunCollectives(*job, ranks);
      EXPECT_EQ("", result.failure);
      EXPECT_TRUE(result.run.violations.empty());
      EXPECT_EQ(4u * ranks, result.collectives.calls[static_cast<int>(CollectiveKind::kReduce)]);
      EXPECT_EQ(1u, result.collectives.groups);
      EXPECT_EQ(0u, result.ranks[0].traffic.messages);
      digest = result.digest;
    }
    EXPECT_EQ(digests[0], digests[1]);
  }
}

// Ranks of one hub call a reduce at different times, and who has given its operand goes on: no time
// that has passed comes again.
TEST(MpiCollectives, AReduceEndsForARankThatIsNotTheRootWithoutTheOthers) {
  const auto part = [](std::uint32_t r) {
    return [r](Program& rank) {
      const std::uint64_t group = rank.Join({0, 1, 2, 3});
      std::vector<std::int64_t> values = {r + 1};
      if (r < 2) {  // each of hub 0 is late once; messages are for the first rank of hub 1
        for (std::uint32_t late : {0, 1}) {
          for (int i = 0; r == late && i < 50; ++i) rank.Send(1, Pattern(8, 1)), rank.Next();
          EXPECT_TRUE(rank.Sum(group, 3, &values, CollectiveKind::kReduce, false));
          rank.Send(1, Pattern(8, 2)), rank.Next();
        }
        return;
      }
      for (int i = 0; i < 2; ++i) {
        values = {r + 1};
        EXPECT_TRUE(rank.Sum(group, 3, &values, CollectiveKind::kReduce, r == 3));
        EXPECT_EQ(r == 3 ? 10 : r + 1, values[0]);
      }
    };
  };
  const auto job = StartJob(4, 2, OnCaus());
  const JobResult result = RunProgram(*job, {part(0), part(1), part(2), part(3)});
  EXPECT_EQ("", result.failure);
}

TEST(MpiCollectives, ATreeThatIsSetUpAgainLosesNothing) {
  FaultSpec cut = Fault(FaultKind::kLinkDown);
  cut.select.link = LinkEnd{0, 0};
  cut.at = 100 * kMicrosecond;
  cut.duration = 50 * kMicrosecond;
  FaultSpec cau = Fault(FaultKind::kCauDown);
  cau.id = "cau";
  cau.select.in = {2};
  cau.at = 30 * kMicrosecond;
  cau.duration = 400 * kMicrosecond;
  const auto job = StartJob(4, 1, OnCaus());
  Inject(*job, cut);
  Inject(*job, cau);
  const JobResult result = RunCollectives(*job, 4);
  EXPECT_EQ("", result.failure);
  EXPECT_GT(result.virtual_time, 430 * kMicrosecond);
}

TEST(MpiCollectives, CallsThatContradictEachOtherEndTheRunWithBoth) {
  const auto job = StartJob(2, 1, OnCaus());
  const auto part = [](std::size_t count) {
    return [count](Program& rank) {
      const std::uint64_t group = rank.Join({0, 1});
      std::vector<std::int64_t> values(count);
      EXPECT_FALSE(rank.Sum(group, 0, &values));
    };
  };
  const JobResult result = RunProgram(*job, {part(1), part(2)});
  EXPECT_NE(std::string::npos, result.failure.find("an allreduce of 16 bytes")) << result.failure;
  EXPECT_NE(std::string::npos, result.failure.find("an allreduce of 8 bytes")) << result.failure;
}

TEST(MpiCollectives, CommunicatorsBeyondTheTreesOfAHubGetNone) {
  const auto job = StartJob(2, 1, OnCaus());
  const Part part = [](Program& rank) {
    std::vector<std::uint64_t> groups;
    for (std::uint64_t i = 0; i < kCauTrees + 3; ++i) groups.push_back(rank.Join({0, 1}, i));
    for (std::size_t i = 0; i < groups.size(); ++i)
      EXPECT_EQ(i >= kCauTrees, groups[i] == kNoGroup);
    CollectiveRequest leave;
    leave.record = RecordKind::kLeave;
    leave.group = groups[5];
    rank.Leave(&leave);
    std::vector<std::int64_t> ones = {1};
    EXPECT_TRUE(rank.Sum(groups[6], 0, &ones));
    EXPECT_EQ(2, ones[0]);
  };
  const JobResult result = RunProgram(*job, {part, part});
  EXPECT_EQ("", result.failure);
  EXPECT_EQ(3u, result.collectives.refused);
}

// --- Journal -------------------------------------------------------------------------------------

TEST(MpiJournal, AReplayHasTheDigestOfTheRun) {
  const std::string folder = testing::TempDir() + "mpi_journal";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  v1::Scenario machine;
  machine.set_name("machine");
  machine.mutable_topology()->set_supernodes(1);
  machine.mutable_topology()->set_drawers(1);
  machine.mutable_topology()->set_hubs(4);
  v1::MpiJob program;
  for (std::uint32_t r = 0; r < 4; ++r) program.add_hubs(r), program.add_windows(0);
  JobOptions options = OnCaus();
  program.set_collective_bytes(options.collective_bytes);
  auto journal = JobJournal::Open(folder, machine, program);
  ASSERT_TRUE(journal.ok()) << journal.status();
  options.journal = journal->get();
  const auto job = StartJob(4, 1, options);
  FaultSpec cut = Fault(FaultKind::kLinkDown);
  cut.select.link = LinkEnd{0, 0};
  v1::JournalRecord command;
  *command.mutable_create_fault()->mutable_id() = "fault";
  command.mutable_create_fault()->set_link_down("sn0-d0-h0:LL0");
  ASSERT_TRUE(job->Manage([&](Fabric& fabric,
                              Time now) { return fabric.faults()->Create(cut, now).status(); },
                          &command)
                  .ok());
  std::vector<Part> parts;
  for (std::uint32_t r = 0; r < 4; ++r) {
    parts.push_back([r](Program& rank) {
      EveryCollective(r, 4)(rank);
      for (const std::size_t size : {8, 3000, 100000}) {
        std::vector<std::uint8_t> room(size);
        rank.Post(&room);
        rank.Send((r + 1) % 4, Pattern(size, r));
        rank.Next(), rank.Next();
        EXPECT_EQ(Pattern(size, (r + 3) % 4), room);
      }
    });
  }
  const JobResult live = RunProgram(*job, parts);
  EXPECT_EQ("", live.failure);
  ASSERT_TRUE((*journal)->End(live).ok());
  const auto read = ReadJournal(folder);
  ASSERT_TRUE(read.ok()) << read.status();
  std::vector<v1::JournalRecord> commands;
  for (const v1::JournalRecord& record : read->records) {
    if (!record.has_apply() && !record.has_end()) commands.push_back(record);
  }
  const auto again = ReplayJob(machine, program, commands);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ("", again->failure);
  EXPECT_EQ(live.digest, again->digest);
  EXPECT_EQ(live.times, again->times);
  commands.back().mutable_mpi_calls()->resize(commands.back().mpi_calls().size() / 2);
  const auto cut_off = ReplayJob(machine, program, commands);
  EXPECT_FALSE(cut_off.ok() && cut_off->digest == live.digest);
}

}  // namespace
}  // namespace percs::mpi
