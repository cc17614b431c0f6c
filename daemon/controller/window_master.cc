#include "daemon/controller/window_master.h"

#include <algorithm>

#include "emulator/base/check.h"
#include "fmt/format.h"

namespace percs {

absl::Status WindowMaster::OnReport(int process, const v1::WindowReport& report) {
  State& state = states_[process];
  const int sent = report.peers_size();
  if (report.batches_size() != sent || report.arrivals_size() != sent) {
    return absl::InvalidArgumentError(
        fmt::format("process {} reports {} peers, {} batches and {} arrivals", process, sent,
                    report.batches_size(), report.arrivals_size()));
  }
  for (int i = 0; i < sent; ++i) {
    const std::uint32_t to = report.peers(i);
    if (to >= states_.size() || static_cast<int>(to) == process || report.arrivals(i) < now_) {
      return absl::InvalidArgumentError(fmt::format(
          "process {} reports a batch to process {} that arrives at {}; there are {} "
          "processes and virtual time is {}",
          process, to, FormatTime(report.arrivals(i)), states_.size(), FormatTime(now_)));
    }
    State& receiver = states_[to];
    receiver.arrival = std::min(receiver.arrival, report.arrivals(i));
    if (report.batches(i) == 0) continue;  // comes with the grant
    const auto from = static_cast<std::uint32_t>(process);
    auto& needed = receiver.needed;
    const auto it = std::find_if(needed.begin(), needed.end(),
                                 [from](const Needed& n) { return n.process == from; });
    if (it == needed.end()) {
      needed.push_back({from, report.batches(i)});
    } else {
      it->batches = std::max(it->batches, report.batches(i));
    }
  }
  state.next_event = report.next_event();
  state.next_foreground = report.has_next_foreground() ? report.next_foreground() : report.next_event();
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

void WindowMaster::Wake(int process, Time at) {
  states_[process].next_event = std::min(states_[process].next_event, at);
  states_[process].next_foreground = std::min(states_[process].next_foreground, at);
}

Time WindowMaster::next() const {
  Time next = kNever;
  for (const State& s : states_) next = std::min({next, s.next_event, s.arrival});
  return next;
}

Time WindowMaster::next_foreground() const {
  Time next = kNever;
  for (const State& s : states_) next = std::min(next, s.next_foreground);
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

const std::vector<int>& WindowMaster::Open(Time end) {
  PERCS_CHECK(running_ == 0);
  now_ = end;
  ++windows_;
  granted_.clear();
  for (std::size_t p = 0; p < states_.size(); ++p) {
    State& s = states_[p];
    if (std::min(s.next_event, s.arrival) >= end) continue;
    s.running = true;
    ++s.windows;
    ++running_;
    s.arrival = kNever;
    granted_.push_back(static_cast<int>(p));
  }
  return granted_;
}

const std::vector<int>& WindowMaster::Close() {
  PERCS_CHECK(running_ == 0);
  granted_.clear();
  for (std::size_t p = 0; p < states_.size(); ++p) {
    State& s = states_[p];
    if (s.needed.empty()) continue;
    s.running = true;
    ++running_;
    s.arrival = kNever;
    granted_.push_back(static_cast<int>(p));
  }
  return granted_;
}

void WindowMaster::FillGrant(int process, v1::WindowGrant* grant) {
  State& s = states_[process];
  grant->set_end(now_);
  for (const Needed& n : s.needed) {
    grant->add_peers(n.process);
    grant->add_batches(n.batches);
  }
  s.needed.clear();
}

}  // namespace percs
