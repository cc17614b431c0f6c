#include "emulator/workload/trace_replay.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <tuple>
#include <utility>

#include "emulator/base/check.h"

namespace percs {
namespace {

// Ends are held below "no event"; a trace that reaches it is meaningless.
constexpr Time kLast = kNever - 1;

template <typename T>
void PushHeap(std::vector<T>& heap, T value) {
  heap.push_back(value);
  std::push_heap(heap.begin(), heap.end(), std::greater<>());
}
template <typename T>
T PopHeap(std::vector<T>& heap) {
  std::pop_heap(heap.begin(), heap.end(), std::greater<>());
  const T top = heap.back();
  heap.pop_back();
  return top;
}

std::uint32_t RanksPerNode(std::uint32_t ranks, NodeId nodes) {
  return (ranks + nodes - 1) / nodes;
}

}  // namespace

NodeId NodeOfRank(RankMapping mapping, std::uint32_t rank, std::uint32_t ranks, NodeId nodes) {
  return mapping == RankMapping::kRoundRobin ? rank % nodes : rank / RanksPerNode(ranks, nodes);
}

std::vector<std::uint32_t> RanksOfNode(RankMapping mapping, NodeId node, std::uint32_t ranks,
                                       NodeId nodes) {
  std::vector<std::uint32_t> here;
  if (mapping == RankMapping::kRoundRobin) {
    for (std::uint64_t r = node; r < ranks; r += nodes)
      here.push_back(static_cast<std::uint32_t>(r));
  } else {
    const std::uint64_t per_node = RanksPerNode(ranks, nodes);
    const std::uint64_t end = std::min<std::uint64_t>(ranks, (node + 1) * per_node);
    for (std::uint64_t r = node * per_node; r < end; ++r)
      here.push_back(static_cast<std::uint32_t>(r));
  }
  return here;
}

TraceReplay::TraceReplay(const TraceWorkload& workload, std::vector<std::uint32_t> ranks_here,
                         Time send_overhead, Time receive_overhead)
    : workload_(workload), send_overhead_(send_overhead), receive_overhead_(receive_overhead) {
  PERCS_CHECK(workload.calc_scale >= 0 && send_overhead >= 0 && receive_overhead >= 0);
  PERCS_CHECK(std::is_sorted(ranks_here.begin(), ranks_here.end()));
  for (std::uint32_t rank : ranks_here) AddRank(rank);
  AddChannels();
  running_.reserve(cpus_.size());
  touched_.reserve(cpus_.size());
}

void TraceReplay::AddRank(std::uint32_t number) {
  PERCS_CHECK(number < workload_.trace.ranks.size());
  const std::vector<GoalOp>& ops = workload_.trace.ranks[number];
  Rank& rank = ranks_.emplace_back();
  rank.first = static_cast<OpId>(operations_.size());
  rank.unfinished = static_cast<std::uint32_t>(ops.size());
  rank.result.rank = number;
  log_.Add(number);
  rank.result.finished = kNever;
  std::vector<std::uint32_t> cpu_numbers;
  for (const GoalOp& op : ops) cpu_numbers.push_back(op.cpu);
  std::sort(cpu_numbers.begin(), cpu_numbers.end());
  cpu_numbers.erase(std::unique(cpu_numbers.begin(), cpu_numbers.end()), cpu_numbers.end());
  for (const GoalOp& op : ops) {
    Operation& operation = operations_.emplace_back();
    operation.op = &op;
    operation.dependencies = op.dependencies;
    const auto cpu = std::lower_bound(cpu_numbers.begin(), cpu_numbers.end(), op.cpu);
    operation.cpu = static_cast<std::uint32_t>(cpus_.size() + (cpu - cpu_numbers.begin()));
  }
  for (std::size_t i = 0; i < cpu_numbers.size(); ++i) {
    cpus_.emplace_back().rank = static_cast<std::uint32_t>(ranks_.size() - 1);
  }
}

void TraceReplay::AddChannels() {
  std::vector<std::pair<Channel, OpId>> receives;
  for (OpId id = 0; id < operations_.size(); ++id) {
    const GoalOp& op = *operations_[id].op;
    if (op.kind != GoalOp::Kind::kRecv) continue;
    receives.push_back(
        {{ranks_[cpus_[operations_[id].cpu].rank].result.rank, op.peer, op.tag}, id});
  }
  const auto key = [](const Channel& c) { return std::tuple(c.destination, c.source, c.tag); };
  std::sort(receives.begin(), receives.end(), [&](const auto& a, const auto& b) {
    return std::tuple(key(a.first), a.second) < std::tuple(key(b.first), b.second);
  });
  for (const auto& [channel, id] : receives) {
    if (channels_.empty() || key(channels_.back()) != key(channel)) channels_.push_back(channel);
    operations_[id].channel = static_cast<std::uint32_t>(channels_.size() - 1);
  }
}

TraceReplay::Channel* TraceReplay::FindChannel(std::uint32_t destination, std::uint32_t source,
                                               std::uint32_t tag) {
  const auto wanted = std::tuple(destination, source, tag);
  const auto found = std::lower_bound(channels_.begin(), channels_.end(), wanted,
                                      [](const Channel& c, const auto& value) {
                                        return std::tuple(c.destination, c.source, c.tag) < value;
                                      });
  if (found == channels_.end()) return nullptr;
  return std::tuple(found->destination, found->source, found->tag) == wanted ? &*found : nullptr;
}

Time TraceReplay::TimeOnCpu(const GoalOp& op) const {
  if (op.kind == GoalOp::Kind::kSend) return send_overhead_;
  if (op.kind == GoalOp::Kind::kRecv) return receive_overhead_;
  // Exact without a scale; one rounding with it, the same on every host.
  if (workload_.calc_scale == 1.0 && op.size <= static_cast<std::uint64_t>(kLast / kNanosecond)) {
    return static_cast<Time>(op.size) * kNanosecond;
  }
  const double scaled = static_cast<double>(op.size) * workload_.calc_scale * kNanosecond;
  return scaled < static_cast<double>(kLast) ? static_cast<Time>(std::llround(scaled)) : kLast;
}

void TraceReplay::Start(Time now, TraceActions& actions) {
  now_ = now;
  for (Rank& rank : ranks_) {
    rank.since = now;
    if (rank.unfinished > 0) continue;
    rank.result.finished = now;
    ++ranks_done_;
    NoteState(rank);
  }
  for (OpId id = 0; id < operations_.size(); ++id) {
    if (operations_[id].dependencies == 0) released_.push_back(id);  // ascending, so a heap
  }
  Advance(now, actions);
}

void TraceReplay::OnTimer(Time now, std::uint64_t, TraceActions& actions) { Advance(now, actions); }

void TraceReplay::OnMessage(Time now, std::uint32_t source_rank, std::uint32_t destination_rank,
                            std::uint32_t tag, std::uint64_t, TraceActions& actions) {
  PERCS_CHECK(now >= now_);
  now_ = now;
  Channel* const channel = FindChannel(destination_rank, source_rank, tag);
  if (channel == nullptr) return;
  if (channel->first == kNone) {
    ++channel->messages;
    return;
  }
  const OpId id = channel->first;
  channel->first = operations_[id].next;
  Rank& rank = ranks_[cpus_[operations_[id].cpu].rank];
  CountWaiting(rank);
  --rank.open_receives;
  NoteState(rank);
  Enqueue(id);
  Advance(now, actions);
}

Time TraceReplay::NextSend() const {
  Time next = kNever;
  for (const Queued& running : running_) {
    const bool sends = operations_[running.op].op->kind == GoalOp::Kind::kSend;
    next = std::min(next, running.at + (sends ? 0 : send_overhead_));
  }
  return next;
}

void TraceReplay::Advance(Time now, TraceActions& actions) {
  PERCS_CHECK(now >= now_);
  now_ = now;
  do {
    FinishDue(actions);
    ReleaseReady();
  } while (StartOnIdleCpus(actions));
}

void TraceReplay::FinishDue(TraceActions& actions) {
  PERCS_CHECK(running_.empty() || running_.front().at >= now_);  // otherwise the hub lost a timer
  while (!running_.empty() && running_.front().at == now_) Finish(PopHeap(running_).op, actions);
}

void TraceReplay::Finish(OpId id, TraceActions& actions) {
  const Operation& operation = operations_[id];
  const GoalOp& op = *operation.op;
  Cpu& cpu = cpus_[operation.cpu];
  Rank& rank = ranks_[cpu.rank];
  CountWaiting(rank);
  --rank.busy_cpus;
  --rank.busy[static_cast<std::size_t>(op.kind)];
  cpu.running = kNone;
  (op.kind == GoalOp::Kind::kCalc ? rank.result.calc : rank.result.overhead) += now_ - cpu.started;
  Touch(operation.cpu);
  if (op.kind == GoalOp::Kind::kSend) {
    actions.SendMessage(rank.result.rank, op.peer, op.tag, op.size);
  }
  Satisfy(rank, op.after_finish);
  if (--rank.unfinished == 0) {
    rank.result.finished = now_;
    ++ranks_done_;
  }
  NoteState(rank);
}

void TraceReplay::ReleaseReady() {
  while (!released_.empty()) {
    const OpId id = PopHeap(released_);
    if (operations_[id].op->kind == GoalOp::Kind::kRecv) {
      Post(id);
    } else {
      Enqueue(id);
    }
  }
}

// The order over CPUs is fixed only so that the caller sees one order of SetTimer.
bool TraceReplay::StartOnIdleCpus(TraceActions& actions) {
  std::sort(touched_.begin(), touched_.end());
  bool started = false;
  for (std::uint32_t index : touched_) {
    Cpu& cpu = cpus_[index];
    cpu.touched = false;
    if (cpu.running != kNone || cpu.ready.empty()) continue;
    StartOn(cpu, actions);
    started = true;
  }
  touched_.clear();
  return started;
}

void TraceReplay::StartOn(Cpu& cpu, TraceActions& actions) {
  const OpId id = PopHeap(cpu.ready).op;
  const GoalOp& op = *operations_[id].op;
  Rank& rank = ranks_[cpu.rank];
  CountWaiting(rank);
  ++rank.busy_cpus;
  ++rank.busy[static_cast<std::size_t>(op.kind)];
  NoteState(rank);
  cpu.running = id;
  cpu.started = now_;
  const Time end = now_ + std::min(TimeOnCpu(op), kLast - now_);
  PushHeap(running_, {end, id});
  if (end > now_) actions.SetTimer(end, id);
  if (op.kind != GoalOp::Kind::kRecv) Satisfy(rank, op.after_start);
}

void TraceReplay::Post(OpId id) {
  Operation& operation = operations_[id];
  Rank& rank = ranks_[cpus_[operation.cpu].rank];
  Satisfy(rank, operation.op->after_start);
  Channel& channel = channels_[operation.channel];
  if (channel.messages > 0) {
    --channel.messages;
    Enqueue(id);
    return;
  }
  CountWaiting(rank);
  ++rank.open_receives;
  NoteState(rank);
  if (channel.first == kNone) {
    channel.first = id;
  } else {
    operations_[channel.last].next = id;
  }
  channel.last = id;
}

void TraceReplay::Enqueue(OpId id) {
  PushHeap(cpus_[operations_[id].cpu].ready, {now_, id});
  Touch(operations_[id].cpu);
}

void TraceReplay::Touch(std::uint32_t cpu) {
  if (std::exchange(cpus_[cpu].touched, true)) return;
  touched_.push_back(cpu);
}

void TraceReplay::Satisfy(const Rank& rank, const std::vector<std::uint32_t>& dependents) {
  for (std::uint32_t dependent : dependents) {
    const OpId id = rank.first + dependent;
    if (--operations_[id].dependencies == 0) PushHeap(released_, id);
  }
}

void TraceReplay::CountWaiting(Rank& rank) {
  if (rank.busy_cpus == 0 && rank.open_receives > 0) rank.result.waiting += now_ - rank.since;
  rank.since = now_;
}

void TraceReplay::NoteState(const Rank& rank) {
  constexpr std::pair<GoalOp::Kind, RankState> kStates[] = {
      {GoalOp::Kind::kCalc, RankState::kComputing},
      {GoalOp::Kind::kSend, RankState::kSending},
      {GoalOp::Kind::kRecv, RankState::kReceiving}};
  RankState state = rank.open_receives > 0 ? RankState::kWaiting : RankState::kIdle;
  if (rank.unfinished == 0) state = RankState::kDone;
  for (const auto& [kind, doing] : kStates) {
    if (rank.busy[static_cast<std::size_t>(kind)] == 0) continue;
    state = doing;
    break;
  }
  log_.Enter(static_cast<std::size_t>(&rank - ranks_.data()), state, now_);
}

std::vector<RankResult> TraceReplay::results() const {
  std::vector<RankResult> results;
  results.reserve(ranks_.size());
  for (const Rank& rank : ranks_) results.push_back(rank.result);
  return results;
}

std::vector<TraceWait> TraceReplay::Waits() const {
  std::vector<OpId> oldest(ranks_.size(), kNone);
  for (const Channel& channel : channels_) {
    for (OpId id = channel.first; id != kNone; id = operations_[id].next) {
      OpId& best = oldest[cpus_[operations_[id].cpu].rank];
      best = std::min(best, id);
    }
  }
  std::vector<TraceWait> waits;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (oldest[i] == kNone) continue;
    const GoalOp& op = *operations_[oldest[i]].op;
    waits.push_back({ranks_[i].result.rank, oldest[i] - ranks_[i].first, op.peer, op.tag});
  }
  return waits;
}

}  // namespace percs
