#include "daemon/controller/run/window_master.h"

#include <algorithm>

#include "emulator/base/check.h"
#include "fmt/format.h"

namespace percs {

absl::Status WindowMaster::OnReport(std::uint32_t process, const v1::WindowReport& report) {
  State& state = states_[process];
  const int sent = report.peers_size();
  if (report.batches_size() != sent || report.arrivals_size() != sent) {
    return absl::InvalidArgumentError(
        fmt::format("process {} reports {} peers, {} batches and {} arrivals", process, sent,
                    report.batches_size(), report.arrivals_size()));
  }
  for (int i = 0; i < sent; ++i) {
    const std::uint32_t to = report.peers(i);
    if (to >= states_.size() || to == process || report.arrivals(i) < now_) {
      return absl::InvalidArgumentError(fmt::format(
          "process {} reports a batch to process {} that arrives at {}; but there are {} processes "
          "and virtual time is {}",
          process, to, FormatTime(report.arrivals(i)), states_.size(), FormatTime(now_)));
    }
    State& receiver = states_[to];
    if (receiver.lost) continue;
    receiver.arrival = std::min(receiver.arrival, report.arrivals(i));
    if (report.batches(i) == 0) continue;  // comes with the grant
    auto& needed = receiver.needed;
    const auto it = std::find_if(needed.begin(), needed.end(),
                                 [process](const Needed& n) { return n.process == process; });
    if (it == needed.end()) {
      needed.push_back({process, report.batches(i)});
    } else {
      it->batches = std::max(it->batches, report.batches(i));
    }
  }
  state.next_event = report.next_event();
  state.next_foreground =
      report.has_next_foreground() ? report.next_foreground() : report.next_event();
  state.left = {report.unfinished(), report.resident()};
  state.packets_delivered = report.packets_delivered();
  state.flits_moved = report.flits_moved();
  state.reconnects = report.reconnects();
  if (state.running) {
    state.running = false;
    --running_;
  }
  return absl::OkStatus();
}

void WindowMaster::Lose(std::uint32_t process) {
  State& s = states_[process];
  if (s.running) --running_;
  const std::uint64_t windows = s.windows, delivered = s.packets_delivered;
  s = State();
  s.windows = windows;
  s.packets_delivered = delivered;
  s.lost = true;
  for (State& other : states_) {
    std::erase_if(other.needed, [process](const Needed& n) { return n.process == process; });
  }
}

void WindowMaster::Wake(std::uint32_t process, Time at) {
  if (states_[process].lost) return;
  states_[process].wake = std::min(states_[process].wake, at);
}

Time WindowMaster::next() const {
  Time next = kNever;
  for (const State& s : states_) next = std::min({next, s.next_event, s.arrival, s.wake});
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
  PERCS_CHECK(running_ == 0);
  window_from_ = std::min(next(), end);
  now_ = end;
  ++windows_;
  granted_.clear();
  for (std::uint32_t p = 0; p < states_.size(); ++p) {
    State& s = states_[p];
    if (std::min({s.next_event, s.arrival, s.wake}) >= end) continue;
    s.running = true;
    ++s.windows;
    ++running_;
    s.arrival = s.wake = kNever;
    granted_.push_back(p);
  }
  return granted_;
}

const std::vector<std::uint32_t>& WindowMaster::Close() {
  PERCS_CHECK(running_ == 0);
  granted_.clear();
  for (std::uint32_t p = 0; p < states_.size(); ++p) {
    State& s = states_[p];
    if (s.needed.empty()) continue;
    s.running = true;
    ++running_;
    s.arrival = s.wake = kNever;
    granted_.push_back(p);
  }
  return granted_;
}

void WindowMaster::Save(v1::SavedMaster* saved) const {
  saved->set_now(now_);
  saved->set_windows(windows_);
  saved->set_window_from(window_from_);
  for (const State& s : states_) {
    v1::SavedProcess* p = saved->add_processes();
    p->set_next_event(s.next_event);
    p->set_next_foreground(s.next_foreground);
    p->set_arrival(s.arrival);
    if (s.wake != kNever) p->set_wake(s.wake);
    for (const Needed& n : s.needed) {
      p->add_needed_peers(n.process);
      p->add_needed_batches(n.batches);
    }
    p->set_unfinished(s.left.unfinished);
    p->set_resident(s.left.resident_packets);
    p->set_packets_delivered(s.packets_delivered);
    p->set_flits_moved(s.flits_moved);
    p->set_windows(s.windows);
    p->set_reconnects(s.reconnects);
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
  now_ = saved.now();
  windows_ = saved.windows();
  window_from_ = saved.window_from();
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const v1::SavedProcess& p = saved.processes(static_cast<int>(i));
    State& s = states_[i];
    s.next_event = p.next_event();
    s.next_foreground = p.next_foreground();
    s.arrival = p.arrival();
    s.wake = p.has_wake() ? p.wake() : kNever;
    for (int n = 0; n < std::min(p.needed_peers_size(), p.needed_batches_size()); ++n) {
      s.needed.push_back({p.needed_peers(n), p.needed_batches(n)});
    }
    s.left = {p.unfinished(), p.resident()};
    s.packets_delivered = p.packets_delivered();
    s.flits_moved = p.flits_moved();
    s.windows = p.windows();
    s.reconnects = p.reconnects();
    s.running = p.running();
    s.lost = p.lost();
    if (s.running) ++running_;
  }
  return absl::OkStatus();
}

void WindowMaster::FillGrant(std::uint32_t process, v1::WindowGrant* grant) {
  State& s = states_[process];
  grant->set_end(now_);
  for (const Needed& n : s.needed) {
    grant->add_peers(n.process);
    grant->add_batches(n.batches);
  }
  s.needed.clear();
}

}  // namespace percs
