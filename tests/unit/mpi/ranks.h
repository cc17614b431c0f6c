// Ranks as threads of this process, each with the provider's link to a job on a drawer of four
// hubs. The drawer is in one fabric, or in one for each of several processes.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/mpi/job.h"
#include "client/mpi/summary.h"
#include "client/ofi/rank.h"
#include "emulator/routing/planner.h"

namespace percs::mpi {

inline constexpr std::uint64_t kTag = 7;

inline std::vector<std::uint8_t> Pattern(std::size_t bytes, unsigned seed) {
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

inline std::unique_ptr<Job> StartJob(std::size_t ranks, std::uint32_t per_hub = 1,
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
inline std::vector<std::thread> StartRanks(
    const std::vector<Part>& parts, const std::function<std::string(std::uint32_t)>& socket_of) {
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

inline JobResult RunProgram(Job& job, const std::vector<Part>& parts) {
  for (std::thread& thread : StartRanks(parts, [&](std::uint32_t) { return job.socket(); }))
    thread.join();
  return job.Finish();
}

inline JobResult RunProgram(const std::vector<Part>& parts) {
  const auto job = StartJob(parts.size());
  return RunProgram(*job, parts);
}

inline FaultSpec Fault(FaultKind kind) {
  FaultSpec fault;
  fault.id = "fault";
  fault.kind = kind;
  return fault;
}

inline void Inject(Job& job, const FaultSpec& fault) {
  EXPECT_TRUE(job.Manage([&](Fabric& fabric, Time now) {
                   return fabric.faults()->Create(fault, now).status();
                 })
                  .ok());
}

// --- Ranks on hubs of several processes
// ------------------------------------------------------------------

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
      v1::EndRanksReply ended;
      CollectivesToProto(jobs_[p]->collectives(), &ended);
      AddCollectives(ended, &result.collectives);
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
inline std::vector<Part> EveryPair(std::uint32_t per_hub) {
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

inline JobOptions OnFourHubs(std::uint32_t per_hub) {
  JobOptions options;
  options.machine.topology.supernodes = 1;
  options.machine.topology.drawers = 1;
  options.machine.topology.hubs = 4;
  for (std::uint32_t r = 0; r < 4 * per_hub; ++r)
    options.places.push_back({r / per_hub, static_cast<WindowId>(r % per_hub)});
  return options;
}

}  // namespace percs::mpi
