#include "daemon/controller/run/window_master.h"

#include <algorithm>
#include <utility>

#include "daemon/link/codec.h"
#include "emulator/base/check.h"
#include "fmt/format.h"

namespace percs {

absl::Status WindowMaster::OnReport(std::uint32_t process, const v1::WindowReport& report) {
  if (absl::Status status = Check(process, report); !status.ok()) return status;
  for (int i = 0; i < report.peers_size(); ++i) {
    State& receiver = states_[report.peers(i)];
    if (receiver.lost) continue;
    receiver.arrival = std::min(receiver.arrival, report.arrivals(i));
    receiver.Need(process, report.batches(i), report.credits(i), report.carried(i));
    receiver.FindCredits();
  }
  State& state = states_[process];
  state.next_event = report.next_event();
  state.output =
      report.has_earliest_output() ? report.earliest_output() : AtOnce(report.next_event());
  state.next_foreground =
      report.has_next_foreground() ? report.next_foreground() : report.next_event();
  state.waits_for.assign(report.waits_for().begin(), report.waits_for().end());
  state.FindCredits();
  state.left = {report.unfinished(), report.resident()};
  state.packets_delivered = report.packets_delivered();
  state.flits_moved = report.flits_moved();
  state.reconnects = report.reconnects();
  if (state.running) {
    if (report.has_reached()) state.clock = std::min(state.clock, report.reached());
    state.running = false;
    --running_;
    OnStill();
  }
  return absl::OkStatus();
}

absl::Status WindowMaster::Check(std::uint32_t process, const v1::WindowReport& report) const {
  const int sent = report.peers_size();
  if (report.batches_size() != sent || report.arrivals_size() != sent ||
      report.credits_size() != sent || report.carried_size() != sent) {
    return absl::InvalidArgumentError(
        fmt::format("process {} reports {} peers, {} batches, {} that are carried, {} arrivals and "
                    "{} credits",
                    process, sent, report.batches_size(), report.carried_size(),
                    report.arrivals_size(), report.credits_size()));
  }
  for (int i = 0; i < sent; ++i) {
    const std::uint32_t to = report.peers(i);
    if (to >= states_.size() || to == process) {
      return absl::InvalidArgumentError(
          fmt::format("process {} reports a batch to process {}; but there are {} processes",
                      process, to, states_.size()));
    }
    if (report.carried(i).size() > kCarriedBytesMax) {
      return absl::InvalidArgumentError(fmt::format(
          "process {} reports a batch of {} bytes to process {}; at most {} are carried", process,
          report.carried(i).size(), to, kCarriedBytesMax));
    }
    const Time arrival = std::min(report.arrivals(i), report.credits(i));
    if (states_[to].lost || arrival >= states_[to].clock) continue;
    return absl::InvalidArgumentError(fmt::format(
        "process {} reports a batch to process {} that arrives at {}; but there virtual time is "
        "already {}",
        process, to, FormatTime(arrival), FormatTime(states_[to].clock)));
  }
  if (report.has_earliest_output() && report.earliest_output() < AtOnce(report.next_event())) {
    return absl::InvalidArgumentError(fmt::format(
        "process {} reports that it reaches others at {}; not before a crossing of {} after its "
        "next event at {}",
        process, FormatTime(report.earliest_output()), FormatTime(crossing_),
        FormatTime(report.next_event())));
  }
  if (!std::is_sorted(report.waits_for().begin(), report.waits_for().end())) {
    return absl::InvalidArgumentError(
        fmt::format("process {} reports processes that it waits for out of order", process));
  }
  return absl::OkStatus();
}

// Neither a number nor a batch: it comes with the grant otherwise.
void WindowMaster::State::Need(std::uint32_t process, std::uint64_t batches, Time credit,
                               const std::string& carried) {
  if (batches == 0 && carried.empty()) return;
  const auto last = std::find_if(needed.rbegin(), needed.rend(),
                                 [process](const Needed& n) { return n.process == process; });
  if (!carried.empty() || last == needed.rend() || !last->carried.empty()) {
    needed.push_back({process, carried.empty() ? batches : 0, credit, carried});
    return;
  }
  last->batches = std::max(last->batches, batches);
  last->credit = std::min(last->credit, credit);
}

void WindowMaster::State::FindCredits() {
  credit = awaited = kNever;
  for (const Needed& n : needed) {
    credit = std::min(credit, n.credit);
    if (WaitsFor(n.process)) awaited = std::min(awaited, n.credit);
  }
}

// The span is over when all have run up to its end.
void WindowMaster::OnStill() {
  if (running_ > 0) return;
  in_span_ = in_span_ && next() < end_;
}

Time WindowMaster::unreported_from(std::uint32_t process) const {
  const State& s = states_[process];
  return s.running ? s.from : std::min(s.next(), end_);
}

void WindowMaster::Rejoin(std::uint32_t process) {
  ++other_changes_;
  states_[process].lost = false;
  states_[process].clock = end_;
}

void WindowMaster::Lose(std::uint32_t process) {
  ++other_changes_;
  State& s = states_[process];
  if (s.running) --running_;
  const std::uint64_t windows = s.windows, delivered = s.packets_delivered;
  s = State();
  s.windows = windows;
  s.packets_delivered = delivered;
  s.lost = true;
  for (State& other : states_) {
    std::erase_if(other.needed, [&](const Needed& n) {
      if (n.process != process) return false;
      other.arrival = std::min(other.arrival, n.credit);  // it takes in those that have arrived
      return true;
    });
    other.FindCredits();
  }
  OnStill();
}

void WindowMaster::Wake(std::uint32_t process, Time at) {
  if (states_[process].lost) return;
  ++other_changes_;
  states_[process].wake = std::min(states_[process].wake, at);
}

Time WindowMaster::next() const {
  Time next = kNever;
  for (const State& s : states_) next = std::min({next, s.next(), s.credit});
  return next;
}

Time WindowMaster::next_foreground() const {
  Time next = kNever;
  for (const State& s : states_) next = std::min({next, s.next_foreground, s.wake});
  return next;
}

WorkLeft WindowMaster::left() const {
  WorkLeft left;
  for (const State& s : states_) left += s.left;
  return left;
}

std::uint64_t WindowMaster::packets_delivered() const {
  std::uint64_t sum = 0;
  for (const State& s : states_) sum += s.packets_delivered;
  return sum;
}

std::uint64_t WindowMaster::flits_moved() const {
  std::uint64_t sum = 0;
  for (const State& s : states_) sum += s.flits_moved;
  return sum;
}

const std::vector<std::uint32_t>& WindowMaster::Open(Time end) {
  PERCS_CHECK(!in_span_);
  in_span_ = true;
  end_ = end;
  end_known_ = end - lookahead_ <= next();
  return Continue();
}

bool WindowMaster::Hurry() {
  if (!in_span_ || end_known_) return false;
  ++other_changes_;
  end_known_ = true;
  Time last = 0;
  for (const State& s : states_) last = std::max(last, s.clock);
  end_ = std::min(end_, last);
  return true;
}

// Each runs as far as nothing of another one, nor what a third one answers to that, can reach it.
// How far a process runs after it has sent something itself, it knows (Fabric::WindowReach).
const std::vector<std::uint32_t>& WindowMaster::Continue() {
  PERCS_CHECK(in_span_ && running_ == 0);
  const State* first = nullptr;
  Time next = kNever, lowest = kNever, second = kNever;
  for (const State& s : states_) {
    next = std::min(next, s.next());
    const Time output = s.EarliestOutput(crossing_);
    if (output < lowest) {
      second = std::exchange(lowest, output);
      first = &s;
    } else {
      second = std::min(second, output);
    }
  }
  begun_ = std::min(next, end_);
  ++windows_;
  granted_.clear();
  for (std::uint32_t p = 0; p < states_.size(); ++p) {
    State& s = states_[p];
    const Time end = std::min(&s == first ? second : lowest, end_);
    // In the last window of a span all that arrives before its end is taken in.
    if (s.next() >= end && (end < end_ || s.credit >= end)) continue;
    s.from = std::min(s.next(), end);
    s.clock = end;
    s.running = true;
    ++s.windows;
    ++running_;
    s.arrival = s.credit = s.awaited = s.wake = kNever;
    granted_.push_back(p);
  }
  OnStill();  // nothing is left before its end
  return granted_;
}

const std::vector<std::uint32_t>& WindowMaster::Close() {
  PERCS_CHECK(!in_span_);
  ++other_changes_;
  granted_.clear();
  for (std::uint32_t p = 0; p < states_.size(); ++p) {
    State& s = states_[p];
    if (s.needed.empty()) continue;
    s.from = s.clock = end_;
    s.running = true;
    ++running_;
    s.arrival = s.credit = s.awaited = s.wake = kNever;
    granted_.push_back(p);
  }
  return granted_;
}

void WindowMaster::Save(v1::SavedMaster* saved) const {
  saved->set_end(end_);
  saved->set_windows(windows_);
  saved->set_in_span(in_span_);
  saved->set_end_known(end_known_);
  saved->set_begun(begun_);
  for (const State& s : states_) {
    v1::SavedProcess* p = saved->add_processes();
    p->set_next_event(s.next_event);
    p->set_next_foreground(s.next_foreground);
    p->set_earliest_output(s.output);
    p->set_arrival(s.arrival);
    if (s.wake != kNever) p->set_wake(s.wake);
    for (const Needed& n : s.needed) {
      p->add_needed_peers(n.process);
      p->add_needed_batches(n.batches);
      p->add_needed_credits(n.credit);
      p->add_needed_carried(n.carried);
    }
    p->set_unfinished(s.left.unfinished);
    p->set_resident(s.left.resident_packets);
    p->set_packets_delivered(s.packets_delivered);
    p->set_flits_moved(s.flits_moved);
    p->set_windows(s.windows);
    p->set_reconnects(s.reconnects);
    p->set_from(s.from);
    p->set_clock(s.clock);
    for (const std::uint32_t other : s.waits_for) p->add_waits_for(other);
    p->set_running(s.running);
    p->set_lost(s.lost);
  }
}

absl::Status WindowMaster::Restore(const v1::SavedMaster& saved) {
  if (saved.processes_size() != static_cast<int>(states_.size())) {
    return absl::InvalidArgumentError(
        fmt::format("the saved state has {} processes, but the run has {}", saved.processes_size(),
                    states_.size()));
  }
  end_ = saved.end();
  windows_ = saved.windows();
  in_span_ = saved.in_span();
  end_known_ = saved.end_known();
  begun_ = saved.begun();
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const v1::SavedProcess& p = saved.processes(static_cast<int>(i));
    State& s = states_[i];
    s.next_event = p.next_event();
    s.next_foreground = p.next_foreground();
    s.output = p.has_earliest_output() ? p.earliest_output() : AtOnce(s.next_event);
    s.arrival = p.arrival();
    s.wake = p.has_wake() ? p.wake() : kNever;
    for (int n = 0; n < p.needed_peers_size(); ++n) {
      if (n >= p.needed_batches_size() || n >= p.needed_credits_size() ||
          n >= p.needed_carried_size())
        break;
      s.needed.push_back(
          {p.needed_peers(n), p.needed_batches(n), p.needed_credits(n), p.needed_carried(n)});
    }
    s.waits_for.assign(p.waits_for().begin(), p.waits_for().end());
    s.FindCredits();
    s.left = {p.unfinished(), p.resident()};
    s.packets_delivered = p.packets_delivered();
    s.flits_moved = p.flits_moved();
    s.windows = p.windows();
    s.reconnects = p.reconnects();
    s.from = p.from();
    s.clock = p.clock();
    s.running = p.running();
    s.lost = p.lost();
    if (s.running) ++running_;
  }
  return absl::OkStatus();
}

void WindowMaster::FillGrant(std::uint32_t process, v1::WindowGrant* grant) {
  State& s = states_[process];
  grant->set_end(s.clock);
  for (Needed& n : s.needed) {
    grant->add_peers(n.process);
    grant->add_batches(n.batches);
    grant->add_carried(std::move(n.carried));
  }
  s.needed.clear();
  for (std::uint32_t p = 0; p < states_.size(); ++p) {
    if (states_[p].WaitsFor(process)) grant->add_waiting(p);
  }
}

}  // namespace percs
