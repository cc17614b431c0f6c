// Execution of an application trace (GOAL) on one hub: which operation of which rank runs when.
//
// Rules, in the manner of LogGOPS simulators:
// - An operation is ready once all it `requires` has finished and all it `irequires` has started.
// - A rank has one CPU per `cpu` number. calc (its time x calc_scale), send (send_overhead) and
// recv
//   (receive_overhead) occupy their CPU one at a time, in the order in which they became ready,
//   operations of one instant in the order of the trace. `nic` is not modelled.
// - calc starts and ends with its time on the CPU. send likewise; at its end the message goes to
// the
//   network and the send has finished (it waits for no answer).
// - recv starts (is posted) when it is ready, without the CPU. Messages and posted receives of one
//   (source, destination, tag) meet in order, first with first; the receive is then ready for its
//   CPU, and finished when the overhead is over. Early messages wait without bound or cost.
// - What becomes true at one instant is applied as a whole, in order of (rank, operation), before a
//   CPU takes its next operation. Calls of one instant are applied in the order of the caller.
//
// Nothing is allocated per operation once the queues have grown to their largest size.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "emulator/base/ids.h"
#include "emulator/base/time.h"
#include "emulator/metrics/node_stats.h"
#include "emulator/metrics/rank_log.h"
#include "emulator/scenario/scenario.h"

namespace percs {

// Which hub runs a rank. kRoundRobin: rank modulo the number of hubs. kBlock: the first
// ceil(ranks / nodes) on hub 0, the next on hub 1, and so on.
NodeId NodeOfRank(RankMapping mapping, std::uint32_t rank, std::uint32_t ranks, NodeId nodes);
// The ranks of one hub, ascending.
std::vector<std::uint32_t> RanksOfNode(RankMapping mapping, NodeId node, std::uint32_t ranks,
                                       NodeId nodes);

// What a replay asks of its hub. Neither may call back into the replay before the replay's function
// has returned.
class TraceActions {
 public:
  virtual ~TraceActions() = default;
  // OnTimer(at, token); always later than now.
  virtual void SetTimer(Time at, std::uint64_t token) = 0;
  // Also for a destination on the same hub, and with 0 bytes.
  virtual void SendMessage(std::uint32_t source_rank, std::uint32_t destination_rank,
                           std::uint32_t tag, std::uint64_t bytes) = 0;
};

// An unfinished rank and the oldest receive (in trace order) that has no message yet.
struct TraceWait {
  std::uint32_t rank = 0, operation = 0;
  std::uint32_t source = 0, tag = 0;
  bool operator==(const TraceWait&) const = default;
};

class TraceReplay {
 public:
  // OWNERSHIP: `workload` outlives this. REQUIRES: a trace as ParseGoal returns it, calc_scale >=
  // 0, ranks_here ascending and in the trace.
  TraceReplay(const TraceWorkload& workload, std::vector<std::uint32_t> ranks_here,
              Time send_overhead, Time receive_overhead);

  void Start(Time now, TraceActions& actions);
  // At every time asked for with SetTimer; once per instant is enough, the token does not matter.
  void OnTimer(Time now, std::uint64_t token, TraceActions& actions);
  // A whole message has arrived. A message that no receive of this hub names is ignored.
  void OnMessage(Time now, std::uint32_t source_rank, std::uint32_t destination_rank,
                 std::uint32_t tag, std::uint64_t bytes, TraceActions& actions);

  // If no message arrives, none is sent before this; kNever if nothing runs on a CPU. One that does
  // arrive leads to none within the send overhead.
  Time NextSend() const;
  bool done() const { return ranks_done_ == ranks_.size(); }
  // One per rank here, ascending. `waiting`: all CPUs idle and a receive posted; with one CPU,
  // finished = calc + overhead + waiting. finished is kNever while the rank has not.
  std::vector<RankResult> results() const;
  // What they do; of a rank with several CPUs, the first of computing, sending and receiving.
  RankLog& log() { return log_; }
  // What keeps unfinished ranks from continuing, ascending; for the report of a deadlock.
  std::vector<TraceWait> Waits() const;

 private:
  using OpId = std::uint32_t;  // over all ranks here, in order of (rank, operation)
  static constexpr std::uint32_t kNone = 0xffffffffu;

  struct Operation {
    const GoalOp* op = nullptr;
    std::uint32_t dependencies = 0;  // not yet met
    std::uint32_t cpu = 0;           // index into cpus_
    std::uint32_t channel = kNone;   // recv: index into channels_
    OpId next = kNone;               // recv: next one posted on the channel
  };
  struct Queued {
    Time at;
    OpId op;
    bool operator>(const Queued& o) const { return at != o.at ? at > o.at : op > o.op; }
  };
  struct Cpu {
    std::uint32_t rank = 0;  // index into ranks_
    OpId running = kNone;
    bool touched = false;  // listed in touched_
    Time started = 0;
    std::vector<Queued> ready;  // heap, oldest first
  };
  struct Rank {
    OpId first = 0;
    std::uint32_t unfinished = 0;
    std::uint32_t busy_cpus = 0, open_receives = 0;  // posted, no message yet
    std::array<std::uint32_t, 3> busy{};             // CPUs by GoalOp::Kind
    Time since = 0;                                  // of the last change of these two
    RankResult result;
  };
  // All messages of one (source, destination, tag). Not both waiting messages and posted receives.
  struct Channel {
    std::uint32_t destination = 0, source = 0, tag = 0;
    std::uint32_t messages = 0;  // arrived, not yet received
    OpId first = kNone, last = kNone;
  };

  void AddRank(std::uint32_t number);
  void AddChannels();
  Channel* FindChannel(std::uint32_t destination, std::uint32_t source, std::uint32_t tag);
  Time TimeOnCpu(const GoalOp& op) const;

  void Advance(Time now, TraceActions& actions);
  void FinishDue(TraceActions& actions);
  void Finish(OpId id, TraceActions& actions);
  void ReleaseReady();
  bool StartOnIdleCpus(TraceActions& actions);
  void StartOn(Cpu& cpu, TraceActions& actions);
  void Post(OpId id);
  void Enqueue(OpId id);
  void Touch(std::uint32_t cpu);
  void Satisfy(const Rank& rank, const std::vector<std::uint32_t>& dependents);
  // Before busy_cpus or open_receives change.
  void CountWaiting(Rank& rank);
  // After they have changed.
  void NoteState(const Rank& rank);

  const TraceWorkload& workload_;
  const Time send_overhead_, receive_overhead_;
  std::vector<Rank> ranks_;
  std::vector<Cpu> cpus_;
  std::vector<Operation> operations_;
  std::vector<Channel> channels_;       // by (destination, source, tag)
  std::vector<Queued> running_;         // heap, by end
  std::vector<OpId> released_;          // heap: dependencies met, not yet posted or queued
  std::vector<std::uint32_t> touched_;  // CPUs that may have become free or got work
  std::size_t ranks_done_ = 0;
  Time now_ = 0;
  RankLog log_;
};

}  // namespace percs
