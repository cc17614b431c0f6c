#include "emulator/cell/eib.h"

#include <algorithm>
#include <bit>

#include "emulator/cell/chip_link.h"
#include "emulator/cell/mfc.h"

namespace percs::cell {
namespace {

// Bytes up to the next 128-byte boundary of either address: a line never straddles one.
std::uint32_t LineBytes(const Transfer& t) {
  const std::uint32_t left = t.bytes - t.granted;
  const auto to_boundary = [](std::uint64_t a) {
    return kLineBytes - static_cast<std::uint32_t>(a % kLineBytes);
  };
  return std::min({left, to_boundary(t.ls + t.granted), to_boundary(t.ea + t.granted)});
}

// Segments of a path, as bits; segment u lies between unit u and u + 1.
std::uint32_t PathOf(int source, int hops, bool upward) {
  const int first = upward ? source : (source - hops + kUnits) % kUnits;
  const std::uint32_t bits = ((1u << hops) - 1) << first;
  return (bits | bits >> kUnits) & ((1u << kUnits) - 1);
}

}  // namespace

BusLine Eib::NextLine(Transfer* t) const {
  BusLine line;
  line.transfer = t;
  line.source = t->source_unit;
  line.target = t->target_cell == cell_ ? t->target_unit : kUnitIoif0;
  line.requested = t->requested;
  if (t->is_signal) {
    line.beats = 1;
    line.last = true;
    return line;
  }
  const std::uint32_t bytes = LineBytes(*t);
  // A part of a line takes as long as a whole one; only commands of up to one beat are shorter.
  line.beats = t->bytes <= kBeatBytes ? 1 : kLineBytes / kBeatBytes;
  line.last = t->granted + bytes == t->bytes;
  return line;
}

void Eib::Request(Transfer* t) {
  t->requested = context_->now;
  const int unit = t->mfc->unit();
  const int requester = t->mfc->cell() == cell_ ? unit : kUnits + unit;
  const bool single = t->is_signal || LineBytes(*t) == t->bytes;
  if (single) {
    lines_[requester].push_back(NextLine(t));
  } else {
    transfers_[requester].push_back(t);
  }
  pending_ |= 1u << requester;
  dirty_ = true;
}

void Eib::RequestLine(Transfer* t, int beats, bool last) {
  lines_[kUnitIoif0].push_back(
      {t, kUnitIoif0, t->target_unit, static_cast<std::uint8_t>(beats), last, context_->now});
  pending_ |= 1u << kUnitIoif0;
  dirty_ = true;
}

void Eib::Arbitrate() {
  dirty_ = false;
  Time retry = kNever;
  // The unit served longest ago goes first.
  std::array<std::uint8_t, kRequesters> turn;
  int count = 0;
  for (std::uint32_t part = pending_; part != 0; part &= part - 1) {
    const int requester = std::countr_zero(part);
    int place = count++;
    for (; place > 0 && last_served_[turn[place - 1]] > last_served_[requester]; --place) {
      turn[place] = turn[place - 1];
    }
    turn[place] = static_cast<std::uint8_t>(requester);
  }
  reserved_.fill(0);
  kept_for_memory_ = 0;
  for (const bool memory_only : {true, false}) {
    for (int i = 0; i < count; ++i) {
      if (Serve(turn[i], memory_only, &retry)) last_served_[turn[i]] = ++serves_;
    }
  }
  if (retry < retry_at_) {
    retry_at_ = retry;
    context_->queue.Push(retry,
                         EventKey(EventClass::kTimer, 200 + cell_, 0,
                                  static_cast<std::uint64_t>(BladeTimer::kBusRetry)),
                         0);
  }
}

bool Eib::Serve(int requester, bool memory_only, Time* retry) {
  bool granted = false;
  auto& lines = lines_[requester];
  while (!lines.empty() && (lines.front().source == kUnitMic) == memory_only) {
    if (!TryGrant(lines.front(), retry)) break;
    lines.pop_front();
    granted = true;
  }
  // One line of each in turn; if one cannot go, the next one tries.
  auto& transfers = transfers_[requester];
  for (std::size_t tries = transfers.size(); tries > 0; --tries) {
    Transfer* const t = transfers.front();
    if ((t->source_unit == kUnitMic) == memory_only) {
      const BusLine line = NextLine(t);
      const std::uint32_t bytes = LineBytes(*t);
      if (TryGrant(line, retry)) {
        granted = true;
        t->granted += bytes;
        t->requested = context_->now;
        transfers.pop_front();
        if (!line.last) transfers.push_back(t);
        tries = transfers.size() + 1;  // until none can go, so that each says when it could
        continue;
      }
    }
    transfers.pop_front();
    transfers.push_back(t);
  }
  if (lines.empty() && transfers.empty()) pending_ &= ~(1u << requester);
  return granted;
}

Time Eib::EarliestAtPorts(const BusLine& line, int hops) const {
  const Time cycle = context_->parameters.eib.cycle;
  Time t = std::max({command_free_, out_free_[line.source], in_free_[line.target] - hops * cycle});
  if (line.transfer->target_cell != cell_) {
    t = std::max({t, line.transfer->mfc->link_free(), link_->room_at()});
  }
  return t;
}

Time Eib::EarliestOnRing(const DataRing& ring, int segment, int step, int hops, int beats) const {
  const Time cycle = context_->parameters.eib.cycle;
  Time t = ring.next_start;
  for (int i = 0; i < hops; ++i) {
    t = std::max(t, ring.segment_free[segment] - i * cycle);
    segment += step;
    if (segment == kUnits) segment = 0;
    if (segment < 0) segment = kUnits - 1;
  }
  const auto limit = static_cast<std::size_t>(context_->parameters.eib.transfers_per_ring);
  if (ring.ends.size() == limit) {
    t = std::max(t, *std::min_element(ring.ends.begin(), ring.ends.end()));
  }
  return t;
}

Eib::Route Eib::BestRoute(const BusLine& line) const {
  const int up =
      line.target >= line.source ? line.target - line.source : line.target - line.source + kUnits;
  const int down = kUnits - up;
  Route best;
  for (const bool upward : {up <= down, up > down}) {
    const int hops = upward ? up : down;
    if (hops > context_->parameters.eib.hops_max || hops == 0) continue;
    const int segment = upward ? line.source : (line.source + kUnits - 1) % kUnits;
    const Time ports = EarliestAtPorts(line, hops);
    for (int r = upward ? 0 : 2; r < (upward ? 2 : 4); ++r) {
      if (rings_[r].lost) continue;
      if (reserved_[r] != 0 && (reserved_[r] & PathOf(line.source, hops, upward)) != 0) continue;
      const Time start =
          std::max(ports, EarliestOnRing(rings_[r], segment, upward ? 1 : -1, hops, line.beats));
      if (start < best.start) best = {r, hops, start};
      if (start <= context_->now) return best;
    }
  }
  return best;
}

bool Eib::TryGrant(const BusLine& line, Time* retry) {
  if (line.source != kUnitMic && (kept_for_memory_ & (1u << line.target)) != 0) return false;
  const Route route = BestRoute(line);
  if (route.start > context_->now) {
    // Memory about to send keeps the port of its target free.
    const Time line_time = kLineBytes / kBeatBytes * context_->parameters.eib.cycle;
    if (line.source == kUnitMic && route.start < context_->now + line_time) {
      kept_for_memory_ |= 1u << line.target;
    }
    *retry = std::min(*retry, route.start);
    // A unit that waits only for a ring keeps its path free of units whose turn comes later.
    if (route.ring >= 0 && EarliestAtPorts(line, route.hops) <= context_->now) {
      reserved_[route.ring] |= PathOf(line.source, route.hops, route.ring < 2);
    }
    return false;
  }
  Grant(line, route);
  return true;
}

void Eib::Grant(const BusLine& line, const Route& route) {
  const Time now = context_->now, cycle = context_->parameters.eib.cycle;
  const Time data = line.beats * cycle;
  command_free_ = now + cycle;
  out_free_[line.source] = now + data;
  in_free_[line.target] = now + route.hops * cycle + data;
  DataRing& ring = rings_[route.ring];
  ring.next_start = now + context_->parameters.eib.start_interval * cycle;
  const bool upward = route.ring < 2;
  int segment = upward ? line.source : (line.source + kUnits - 1) % kUnits;
  for (int i = 0; i < route.hops; ++i) {
    ring.segment_free[segment] = now + i * cycle + data;
    segment = upward ? (segment + 1) % kUnits : (segment + kUnits - 1) % kUnits;
  }
  const Time arrival = in_free_[line.target];
  std::erase_if(ring.ends, [now](Time end) { return end <= now; });
  ring.ends.push_back(arrival);

  BladeStats& stats = context_->stats;
  ++stats.eib_transfers[cell_];
  stats.eib_bytes[cell_] += static_cast<std::uint64_t>(line.beats) * kBeatBytes;
  stats.eib_wait_ps[cell_] += static_cast<std::uint64_t>(now - line.requested);
  if (line.transfer->target_cell != cell_) {
    link_->Send(line.transfer, line.beats, line.last, arrival);
  } else if (line.last) {
    line.transfer->mfc->OnLastBeat(line.transfer, arrival);
  }
}

}  // namespace percs::cell
