#include "emulator/runtime/rank.h"

#include <algorithm>

#include "emulator/runtime/node_runtime.h"

namespace percs {

Rank::Rank(NodeRuntime& node, std::uint32_t number, std::uint32_t local, int core, int siblings)
    : node_(node), number_(number), local_(local), core_(core), siblings_(siblings) {}

Time Rank::now() const { return node_.now(); }

Time Rank::Shared(Time cost) const {
  return siblings_ > 0 ? cost * (100 + node_.host().smt) / 100 : cost;
}

Time Rank::CopyShared(Time cost) const {
  const int busy = node_.BusyThreads(core_) - (timed_ ? 1 : 0);
  return busy > 0 ? cost * (100 + node_.host().smt) / 100 : cost;
}

void Rank::Do(Time cost, Function run, void* object, std::uint64_t argument) {
  Append({cost, 0, run, object, argument});
}

void Rank::Append(const Action& action) {
  actions_.push_back(action);
  if (!running_ && !timed_) Advance();
}

void Rank::Post(Work* work, bool blocking) {
  work_.push_back({work, now(), blocking});
  if (!running_ && !timed_) Advance();
}

void Rank::Wake() {
  if (!running_ && !timed_) Advance();
}

void Rank::OnTimer() {
  timed_ = false;
  node_.SetBusy(core_, false);
  running_ = true;
  const Action action = actions_.front();
  actions_.pop_front();
  busy_ += action.cost;
  action.run(action.object, action.argument);
  running_ = false;
  Advance();
}

void Rank::Advance() {
  running_ = true;
  while (true) {
    // A completion may have set what the program waits for.
    if (until_ && *until_) {
      until_ = nullptr;
      std::exchange(waiting_, nullptr).resume();
    }
    const bool blocked = !work_.empty() && work_.front().blocking;
    if (!blocked && !actions_.empty()) {
      if (actions_.front().cost > 0) break;
      const Action action = actions_.front();
      actions_.pop_front();
      action.run(action.object, action.argument);
    } else if (!TryWork()) {
      break;
    }
  }
  running_ = false;
  const bool blocked = !work_.empty() && work_.front().blocking;
  if (!blocked && !actions_.empty()) {
    timed_ = true;
    node_.SetBusy(core_, true);
    const Action& action = actions_.front();
    if (action.bytes > 0 && action.cost > 0) {
      node_.memory_server().Begin(*this, action.cost, action.bytes);
    } else {
      node_.WakeRank(*this, now() + action.cost);
    }
  }
  if (program_.done() && finished_ == kNever) {
    finished_ = now();
    node_.OnProgramEnd(*this);
  }
  const RankState state = timed_            ? RankState::kBusy
                          : program_.done() ? RankState::kDone
                                            : RankState::kWaiting;
  node_.rank_log()->Enter(local_, state, now());
}

// Runs what can be done of the work queue, oldest first.
bool Rank::TryWork() {
  const HostParameters& host = node_.host();
  for (std::size_t i = 0; i < work_.size(); ++i) {
    Time ready_at = now();
    if (!work_[i].work->Check(*this, &ready_at)) {
      if (work_[i].blocking) return false;
      continue;
    }
    const Queued queued = work_[i];
    work_.erase(work_.begin() + static_cast<std::ptrdiff_t>(i));
    const Work::Copies copies = queued.work->copies(*this);
    Time cost = std::max<Time>(ready_at - now(), 0) + CopyShared(copies.cost) + host.shared_step;
    // Its spin ran out: it went back to the queue, and was found there again.
    if (!queued.blocking && now() - queued.since > host.spin_polls * host.poll) cost += host.poll;
    Action action{cost, copies.bytes,
                  [](void* o, std::uint64_t w) { static_cast<Rank*>(o)->RunWork(w); }, this,
                  reinterpret_cast<std::uint64_t>(queued.work)};
    if (queued.blocking && !actions_.empty()) {
      // Ahead of the messages that came in meanwhile.
      actions_.push_back(action);
      for (std::size_t k = actions_.size() - 1; k > 0; --k) std::swap(actions_[k], actions_[k - 1]);
    } else {
      actions_.push_back(action);
    }
    return true;
  }
  return false;
}

void Rank::Run(Task<> program) {
  program_ = std::move(program);
  running_ = true;
  program_.handle().resume();
  running_ = false;
  // A task that began before this one may have sent to it: its thread is at that message already.
  if (!timed_) Advance();
}

}  // namespace percs
